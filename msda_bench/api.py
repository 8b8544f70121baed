"""Everything that a plugin author imports."""

from msda_bench.component.abilities import (
    Augments,
    ChoosesSources,
    Describes,
    Fits,
    HasViews,
    Identified,
    Identifies,
    IdentifiesColumns,
    KnowsRelatedness,
    KnowsSizes,
    NamesAugmentation,
    Prepares,
    Strength,
)
from msda_bench.component.backbone import Backbone, Embedding, Network
from msda_bench.component.base import Added, Component, Count, Located, NonNegative, Positive, Rate, component
from msda_bench.component.dataset import Dataset, DomainData, Inputs, InputSpec, Task
from msda_bench.component.files import Array, ByHand, File, Files, Pip, Row, Rows, Url
from msda_bench.component.parts import Parts
from msda_bench.component.pretrained import Pretrained
from msda_bench.component.scheme import FittedScheme, Scheme
from msda_bench.component.scoring import Metric, Tested, ValidationView, Validator
from msda_bench.component.sizes import Extent, Size, TestSize
from msda_bench.component.step import (
    Batch,
    Carried,
    Examples,
    Group,
    Pass,
    Phase,
    Sizes,
    Stage,
    Step,
    TargetPass,
)
from msda_bench.component.weighing import Aggregate, Aggregator, Discrepancy
from msda_bench.component.weights import load_weights
from msda_bench.errors import BenchError, DataError, PluginError
from msda_bench.layers import BagLinear, Dropout, Normalise, StepKey, StepProgress, fresh_copy
from msda_bench.marker import hookimpl

__all__ = [
    "Added",
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
    "ChoosesSources",
    "Component",
    "Count",
    "DataError",
    "Dataset",
    "Describes",
    "Discrepancy",
    "DomainData",
    "Dropout",
    "Embedding",
    "Examples",
    "Extent",
    "File",
    "Files",
    "Fits",
    "FittedScheme",
    "Group",
    "HasViews",
    "Identified",
    "Identifies",
    "IdentifiesColumns",
    "InputSpec",
    "Inputs",
    "KnowsRelatedness",
    "KnowsSizes",
    "Located",
    "Metric",
    "NamesAugmentation",
    "Network",
    "NonNegative",
    "Normalise",
    "Parts",
    "Pass",
    "Phase",
    "Pip",
    "PluginError",
    "Positive",
    "Prepares",
    "Pretrained",
    "Rate",
    "Row",
    "Rows",
    "Scheme",
    "Size",
    "Sizes",
    "Stage",
    "Step",
    "StepKey",
    "StepProgress",
    "Strength",
    "TargetPass",
    "Task",
    "TestSize",
    "Tested",
    "Url",
    "ValidationView",
    "Validator",
    "component",
    "fresh_copy",
    "hookimpl",
    "load_weights",
]
