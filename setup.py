"""Package metadata. Install with scripts/install.sh, which lets fairseq compile against the PyTorch that is there."""

import runpy
from pathlib import Path

from setuptools import find_packages, setup

CHECKOUT = Path(__file__).parent
# What prepare_nist_zh_en.sh needs: jieba cuts Chinese into words, OpenCC simplifies its characters.
CHINESE = ["jieba>=0.42,<0.43", "opencc>=1.1,<2"]
# What reproduce.sh needs.
WORKFLOW = [
    "snakemake>=8.20,<10; python_version>='3.11'",
    "snakemake-executor-plugin-slurm>=0.11; python_version>='3.11'",
]

setup(
    name="fairseq-plugins",
    version=runpy.run_path(str(CHECKOUT / "fairseq_plugins" / "versions.py"))["VERSION"],
    description="Recurrent and hybrid sequence-to-sequence architectures as a fairseq plugin",
    long_description=(CHECKOUT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["fairseq_plugins", "fairseq_plugins.*"]),
    package_data={
        "fairseq_plugins.corpora.builtin": ["words/*.tsv"],
        "fairseq_plugins.report": ["*.jinja"],
        "fairseq_plugins.tables": ["Snakefile"],
        "fairseq_plugins.kernels": ["*/*.cpp", "*/*.h"],
    },
    python_requires=">=3.10,<3.13",
    install_requires=[
        "fairseq-fixed==0.12.3.1",
        "Jinja2>=3.1,<4",
        "lxml>=5.0,<7",
        "matplotlib>=3.8,<4",
        "nltk>=3.8,<4",
        "numpy>=1.26,<3",
        "pytrec-eval-terrier>=0.5.6,<0.6",
        "PyYAML>=6.0,<7",
        "rouge-score>=0.1.2,<0.2",
        "sacrebleu>=2.4,<3",
        "sacremoses>=0.1,<0.2",
        "scikit-learn>=1.3,<2",
        "scipy>=1.11,<2",
        "sentencepiece>=0.2,<0.3",
        "subword-nmt>=0.3.8,<0.4",
        "torch>=2.5,<3",
        "tqdm>=4.64,<5",
    ],
    extras_require={
        "chinese": CHINESE,
        "workflow": WORKFLOW,
        "dev": [
            *CHINESE,
            *WORKFLOW,
            "hypothesis>=6.100,<7",
            "playwright>=1.45,<2",
            "pytest>=8.0,<10",
            "pytest-timeout>=2.3,<3",
            "pytest-xdist>=3.7,<4",
            "ruff>=0.6,<1",
            # The GPU kernels run under its interpreter.
            "triton>=3.1,<4; sys_platform == 'linux'",
        ],
    },
    classifiers=[
        "License :: OSI Approved :: MIT License",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
    ],
)
