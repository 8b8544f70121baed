"""Everything that a plugin author imports.

What needs torch is imported when it is first used, so that a plugin with datasets alone does not import it.
"""

from typing import TYPE_CHECKING

from msda_bench.component.base import AddedLater, Component, Count, FilePath, NonNegative, Positive, Rate, component
from msda_bench.component.dataset import Dataset, Identified, Identifies, NewRows, NewRowsReader, Stratify
from msda_bench.component.domain_data import Augments, DomainData, Inputs, InputSpec, Strength
from msda_bench.component.files import Array, ByHand, File, Files, Pip, Row, Rows, Url
from msda_bench.component.sizes import Extent, Size, TestSize
from msda_bench.component.task import Task
from msda_bench.deferred import deferred
from msda_bench.errors import BenchError, DataError, DivergedError, PluginError
from msda_bench.marker import hookimpl

if TYPE_CHECKING:
    from msda_bench.component.backbone import Backbone, Embedding, Network, Pretrained, load_weights
    from msda_bench.component.estimator import EstimatorScheme
    from msda_bench.component.parts import Parts
    from msda_bench.component.scheme import FitData, Predictor, Scheme, SchemeBase
    from msda_bench.component.scoring import Metric, Tested, ValidationView, Validator
    from msda_bench.component.step import (
        Batch,
        Carried,
        Examples,
        Group,
        Pass,
        Phase,
        Sizes,
        SourcePass,
        Stage,
        Step,
        TargetPass,
    )
    from msda_bench.component.weighing import Aggregate, Aggregator, Discrepancy
    from msda_bench.layers import (
        BagLinear,
        Dropout,
        EachDomain,
        Norm,
        Normalise,
        StepKey,
        StepProgress,
        WeightNormLinear,
        fresh_copy,
        last_layer,
        norm_layers,
    )

    FittedScheme, Fitting = Predictor, FitData
else:
    _homes = {
        "msda_bench.component.backbone": "Backbone Embedding Network Pretrained load_weights",
        "msda_bench.component.estimator": "EstimatorScheme",
        "msda_bench.component.parts": "Parts",
        "msda_bench.component.scheme": "FitData Predictor Scheme SchemeBase",
        "msda_bench.component.scoring": "Metric Tested ValidationView Validator",
        "msda_bench.component.step": "Batch Carried Examples Group Pass Phase Sizes SourcePass Stage Step TargetPass",
        "msda_bench.component.weighing": "Aggregate Aggregator Discrepancy",
        "msda_bench.layers": (
            "BagLinear Dropout EachDomain Norm Normalise StepKey StepProgress "
            "WeightNormLinear fresh_copy last_layer norm_layers"
        ),
    }
    _imported = deferred(__name__, _homes)
    _FORMER = {"FittedScheme": "Predictor", "Fitting": "FitData"}

    def __getattr__(name: str) -> object:
        return _imported(_FORMER.get(name, name))


Added, Located = AddedLater, FilePath  # like FittedScheme and Fitting, names for plugins until 0.2

__all__ = [
    "AddedLater",
    "Aggregate",
    "Aggregator",
    "Array",
    "Augments",
    "Backbone",
    "BagLinear",
    "Batch",
    "BenchError",
    "ByHand",
    "Carried",
    "Component",
    "Count",
    "DataError",
    "Dataset",
    "Discrepancy",
    "DivergedError",
    "DomainData",
    "Dropout",
    "EachDomain",
    "Embedding",
    "EstimatorScheme",
    "Examples",
    "Extent",
    "File",
    "FilePath",
    "Files",
    "FitData",
    "Group",
    "Identified",
    "Identifies",
    "InputSpec",
    "Inputs",
    "Metric",
    "Network",
    "NewRows",
    "NewRowsReader",
    "NonNegative",
    "Norm",
    "Normalise",
    "Parts",
    "Pass",
    "Phase",
    "Pip",
    "PluginError",
    "Positive",
    "Predictor",
    "Pretrained",
    "Rate",
    "Row",
    "Rows",
    "Scheme",
    "SchemeBase",
    "Size",
    "Sizes",
    "SourcePass",
    "Stage",
    "Step",
    "StepKey",
    "StepProgress",
    "Stratify",
    "Strength",
    "TargetPass",
    "Task",
    "TestSize",
    "Tested",
    "Url",
    "ValidationView",
    "Validator",
    "WeightNormLinear",
    "component",
    "fresh_copy",
    "hookimpl",
    "last_layer",
    "load_weights",
    "norm_layers",
]
