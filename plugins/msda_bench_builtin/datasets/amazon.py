"""Amazon's reviews as bags of words, and the svmlight files that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from msda_bench.api import Array, DomainData, File, Files, InputSpec, Size, Task, Url, component
from msda_bench_builtin.datasets.features import Published
from msda_bench_builtin.datasets.unpacked import reading

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_COLUMNS = 5000


def read_svmlight(path: Path) -> tuple[csr_matrix, Array]:
    """Counts, CSR (n, 5000) float32, and labels, (n,) int64, each -1 or 1, of lines `label index:count ...`.

    Raises:
        DataError: the file has other contents.
    """
    from scipy.sparse import csr_matrix

    with reading(path, "not the expected reviews"):
        lines = [line.split() for line in path.read_bytes().splitlines()]
        pairs = b" ".join(pair for _, *of in lines for pair in of)
        numbers = np.fromstring(pairs.replace(b":", b" "), np.int32, sep=" ")
        starts = np.cumsum([0, *(len(line) - 1 for line in lines)])
        labels = np.array([int(label) for label, *_ in lines])
        shape = len(lines), _COLUMNS
        return csr_matrix((numbers[1::2].astype(np.float32), numbers[0::2], starts), shape=shape), labels


_COMMIT = "74eec5e0ae06bd6614bce048abba492c16a633e3"
_ADDRESS = f"https://raw.githubusercontent.com/GRAAL-Research/domain_adversarial_neural_network/{_COMMIT}/data/"
_FILES = {
    "books_train.svmlight": ("317f9a2ec34b81de770b63a84d8c5cc2dc16bd0be6e079d2ff5b5bad5213ea19", 1134070),
    "books_test.svmlight": ("fe4605c7dcf0e0a9410fd2a32f247caaf9abb352cc6e4c3e0f400853163ad9c4", 2426071),
    "dvd_train.svmlight": ("95f602aa08bf6b55758f7b0b18df3882fe30acb11987ee60b6b4bb3c44cba733", 1133356),
    "dvd_test.svmlight": ("4fe1b1a15010f78d8d0c49fe362d35fd4677463a45f1ac02a9f410ae1e638060", 2039832),
    "electronics_train.svmlight": ("7d0061f03ff3827e4f8036b051b5e5828fddc0cd115aa5b212cd28d624dc14e4", 872265),
    "electronics_test.svmlight": ("641783bc941839c3a111d3488a1b7e3bd820a61ec14a129e7429b47703aa961d", 2461224),
    "kitchen_train.svmlight": ("a70b5ebfe1413e0e16280360905f5c3b64389c435cd20c0165dc9d7f293b31b5", 771076),
    "kitchen_test.svmlight": ("e1502b97a824eb12314be4447394fa736fecb781c0724e6529cd6733ac7ff6d8", 2280620),
}


@component
class Amazon(Published):
    """Sentiment of Amazon reviews of books, DVDs, electronics and kitchenware, as 5000 word and word-pair counts.

    The paper's first benchmark (section 5.1): 27,677 reviews (6465, 5586, 7681, 7945), 1 if the reviewer liked the
    product. The public copy's train and test parts are joined, as in the paper, which draws the training examples of
    every run at random.

    Blitzer, Dredze, Pereira. Biographies, Bollywood, Boom-boxes and Blenders: Domain Adaptation for Sentiment
    Classification. ACL 2007. Processed by Chen, Xu, Weinberger, Sha. Marginalized Denoising Autoencoders for Domain
    Adaptation. ICML 2012.
    """

    name = "amazon"
    version = 1
    licence = "BSD-2-Clause for the processed copy's repository; the reviews' own terms are not stated"
    modality = "text"
    source = "Blitzer et al. 2007, as processed for Ganin et al. 2016 (GRAAL-Research on GitHub)"
    published: ClassVar = {"books": 6465, "dvd": 5586, "electronics": 7681, "kitchen": 7945}
    task = Task("classification", 2)
    input = InputSpec((_COLUMNS,), sparse=True)
    files = tuple(
        File(f"amazon/{name}", digest, size, Url((_ADDRESS + name,))) for name, (digest, size) in _FILES.items()
    )

    train: Size = 2000

    def load(self, domain: str, files: Files) -> DomainData:
        """The domain's train file, then its test file: CSR float32 counts."""
        from scipy.sparse import csr_matrix, vstack

        paths = [files.path(file) for file in self.files if file.path.startswith(f"amazon/{domain}_")]
        parts = [read_svmlight(path) for path in paths]
        counts = csr_matrix(vstack([counts for counts, _ in parts], format="csr"))
        return DomainData(counts, (np.concatenate([labels for _, labels in parts]) + 1) // 2)
