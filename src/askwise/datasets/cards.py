"""A card for each named data set: what it is, whose it is, what its tests cost, how it is split, and what to beware of."""

from __future__ import annotations

from dataclasses import dataclass

_TURNEY = "Turney's, in Canadian dollars"


@dataclass(frozen=True, kw_only=True)
class Card:
    """One data set. `rows` and `columns` are those that are used, after what is left out."""

    name: str
    title: str
    source: str
    licence: str = "CC BY 4.0 (UCI Machine Learning Repository)"
    rows: int | None  # None where only the owner of the file knows
    columns: int  # each is a test
    classes: int = 2
    costs: str = "1 for each"
    splits: str = "0.6 / 0.2 / 0.2, stratified, by seed"
    file: str | None = None  # in the package or in the folder named by ASKWISE_DATA; None for those of scikit-learn
    built_in: bool = False
    sha256: str | None = None
    get: str = ""  # how to come by the file
    traps: str = ""


_ALL = (
    Card(
        name="thyroid",
        title="Is the thyroid underactive? Patients with really missing blood tests",
        source="UCI thyroid disease, `hypothyroid`: https://archive.ics.uci.edu/dataset/102/thyroid+disease",
        rows=3163,
        columns=19,
        costs=(f"{_TURNEY}: history 1, blood tests 9.31 to 20.68, one blood draw 2.10 for all; FTI is computed from TT4 and T4U"),
        file="hypothyroid.csv",
        built_in=True,
        sha256="ffba466e9844cf7d6d8fde1f89209c6ab1d583c865abb449bb6ab8c70875f4c4",
        traps=(
            "whether a test was ordered tells a little of the label (TT4, T4U and FTI are missing in no positive case; boosting "
            "on missingness alone has a balanced accuracy of 0.54 to 0.57), so the flags that say so are left out; TBG is "
            "missing in 92 % of rows, has no published cost and is given TSH's; 151 of 3,163 are positive, so always saying "
            "negative has an accuracy of 0.95"
        ),
    ),
    Card(
        name="heart",
        title="Is a coronary artery narrowed? The Cleveland patients",
        source="UCI heart disease, Cleveland, complete rows: https://archive.ics.uci.edu/dataset/45/heart+disease",
        rows=297,
        columns=13,
        costs=f"{_TURNEY}: history 1, blood draw 2.10, exercise test 86.30, thallium scan 101.90, fluoroscopy 100.90",
        file="cleveland.dat",
        built_in=True,
        sha256="37493c4ba1571d7d329d9503f677582f28eb936b7a52a8e45be5adb75b774bbc",
        traps=(
            "the target is 0 against 1 to 4; cp, restecg and thal are codes without an order; six rows with gaps were "
            "left out before us"
        ),
    ),
    Card(
        name="hepatitis",
        title="Does a patient with hepatitis survive?",
        source="UCI hepatitis: https://archive.ics.uci.edu/dataset/46/hepatitis",
        rows=155,
        columns=19,
        costs=f"{_TURNEY}: history and histology 1, blood tests 5.17 or 6.20, one blood draw 2.10 for all",
        file="hepatitis.csv",
        built_in=True,
        sha256="9971f9d18abb4fc9dd6749eefb0f864b36fa7bdd59f54188c0b148a5c28214bc",
        traps="155 rows, 32 of them deaths: differences of a few points are noise; PROTIME is missing in 67 rows",
    ),
    Card(
        name="pima",
        title="Diabetes among Pima women",
        source=(
            "National Institute of Diabetes and Digestive and Kidney Diseases, donated to UCI by V. Sigillito; a copy: "
            "https://www.openml.org/d/37"
        ),
        licence=(
            "none that we could find; UCI, where it comes from, no longer hands it out, others do (OpenML; mlbench for R), so "
            "ask before you pass it on"
        ),
        rows=768,
        columns=8,
        costs=f"{_TURNEY}: glucose 15.51, insulin 20.68, one blood draw 2.10 for both, all else 1",
        file="pima.dat",
        built_in=True,
        sha256="c385b42aa936c423cde74109f6448fc5bc8423eeae0d4defb4185c03a5ce8a47",
        traps=(
            "a glucose, blood pressure, skin fold, insulin or body mass of 0 means that it was not measured, and is missing here"
        ),
    ),
    Card(
        name="bupa",
        title="Do five blood tests tell who has three drinks a day or more?",
        source="UCI liver disorders (BUPA): https://archive.ics.uci.edu/dataset/60/liver+disorders",
        rows=345,
        columns=5,
        costs=f"{_TURNEY}: blood tests 5.17 or 7.76, one blood draw 2.10 for all",
        file="bupa.dat",
        built_in=True,
        sha256="3e26200160f38e0ceb0c21a1c9f2a23d1c706f2866ceb24603fec134fade4270",
        traps="the last column of the file is an old mark of a split, which many papers take for a diagnosis; it is not used",
    ),
    Card(
        name="digits",
        title="Handwritten digits, 8 x 8 pixels",
        source="scikit-learn's `load_digits`: https://archive.ics.uci.edu/dataset/80",
        rows=1797,
        columns=64,
        classes=10,
        costs="1 for each pixel",
        built_in=True,
        traps="some pixels are the same in all rows; one mean and deviation for all pixels",
    ),
    Card(
        name="breast_cancer",
        title="Is a breast tumour malignant?",
        source="scikit-learn's `load_breast_cancer`: https://archive.ics.uci.edu/dataset/17",
        rows=569,
        columns=30,
        built_in=True,
        traps="ten measurements, each as mean, error and worst: many columns say almost the same",
    ),
    Card(
        name="wine",
        title="From which of three growers is a wine?",
        source="scikit-learn's `load_wine`: https://archive.ics.uci.edu/dataset/109",
        rows=178,
        columns=13,
        classes=3,
        built_in=True,
        traps="178 rows: differences of a few points are noise",
    ),
    Card(
        name="miniboone",
        title="Electron or muon neutrino? As in the paper",
        source="UCI MiniBooNE particle identification: https://archive.ics.uci.edu/dataset/199",
        rows=129_596,
        columns=50,
        splits="45,359 / 19,439 / 64,798, shuffled by seed",
        file="MiniBooNE_PID.txt",
        get="it is in the archive at https://archive.ics.uci.edu/dataset/199",
        traps="468 of 130,064 rows hold -999 everywhere and are left out",
    ),
    Card(
        name="miniboone_tiny",
        title="A small part of MiniBooNE, for trying things out",
        source="rows of UCI MiniBooNE particle identification: https://archive.ics.uci.edu/dataset/199",
        rows=4988,
        columns=50,
        splits="1,995 / 999 / 1,994, fixed",
        file="miniboone_tiny.npz",
        sha256="c58db9f5de49958958772f42b9a3c9f4a7182d3b59c39f450c03f4ead19ae2fb",
        get="it is made of `miniboone`: X, y (1 for signal) and split (train, validation, test)",
        traps=(
            "classes 50/50, unlike the full set, so published areas do not apply; 12 of 5,000 rows hold -999 and are left out"
        ),
    ),
    Card(
        name="forest",
        title="Which trees grow here? As in the paper",
        source="UCI covertype: https://archive.ics.uci.edu/dataset/31/covertype",
        rows=581_012,
        columns=54,
        classes=7,
        splits="200,000 / 81,012 / 300,000, shuffled by seed",
        file="forest.npz",
        sha256="08c6f2e00d51e6456de36ae2724199ebf8c902027610bfd30d8f9ef0a632a611",
        get="with network, ask for download=True, which fetches https://archive.ics.uci.edu/dataset/31/covertype",
        traps=(
            "the last 44 columns are two categories, one-hot; the paper sells each of them alone, and so do we; one soil "
            "has 3 rows"
        ),
    ),
    Card(
        name="cifar",
        title="CIFAR-10 in grey, 20 x 20 pixels, as in the paper",
        source="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence=(
            "none that we could find (unknown, as stated by Hugging Face); its page asks to cite Krizhevsky (2009), Learning "
            "Multiple Layers of Features from Tiny Images"
        ),
        rows=60_000,
        columns=400,
        classes=10,
        costs="1 for each pixel",
        splits="40,000 / 10,000 / 10,000: the official test rows, validation by seed",
        file="cifar.npz",
        sha256="3ff02975158079129fc9f9d288b41715c801b54bc30295f9252dc669482ad880",
        get=("it is made of the images at https://www.cs.toronto.edu/~kriz/cifar.html: X (60,000 x 400, grey), y and is_test"),
        traps="one mean and deviation for all pixels",
    ),
    Card(
        name="mnist",
        title="Handwritten digits, 28 x 28 pixels, as in the paper",
        source="LeCun and Cortes; OpenML: https://www.openml.org/d/554",
        licence=(
            "CC BY-SA 3.0, copyright LeCun and Cortes, as stated by the documentation of Keras; others say otherwise (Hugging "
            "Face: MIT)"
        ),
        rows=70_000,
        columns=784,
        classes=10,
        costs="1 for each pixel",
        splits="50,000 / 10,000 / 10,000: the official test rows, validation by seed",
        file="mnist.npz",
        sha256="e786884e8b7894678b673d1da50a1df08bd3924278ecdbbbbee62e0fe0821569",
        get="with network, ask for download=True, which fetches https://www.openml.org/d/554",
        traps="one mean and deviation for all pixels",
    ),
    Card(
        name="ann_thyroid",
        title="The thyroid again, complete rows, three classes",
        source="UCI thyroid disease, `ann-thyroid`: https://archive.ics.uci.edu/dataset/102/thyroid+disease",
        rows=7200,
        columns=21,
        classes=3,
        costs=(f"{_TURNEY}: history 1, blood tests 9.31 to 20.68, one blood draw 2.10 for all; FTI is computed from TT4 and T4U"),
        splits="3,017 / 755 / 3,428: the official test rows, validation stratified by seed",
        file="ann_thyroid.npz",
        sha256="467cc1ca9ed50a6f811efee3c7a215996fe31e9ad799c599f97bad248cfb2a01",
        get="ann-train.data and ann-test.data of https://archive.ics.uci.edu/dataset/102/thyroid+disease will do as well",
        traps="93 % are of one class; FTI's published cost of 0 means that it is computed from TT4 and T4U",
    ),
    Card(
        name="nhanes",
        title="Diabetes or its onset among adults of the United States, with missing values",
        source="National Health and Nutrition Examination Survey, 1999 to 2018: https://wwwn.cdc.gov/nchs/nhanes/",
        licence="public domain (CDC)",
        rows=49_739,
        columns=46,
        classes=3,
        costs="by section of the survey: 2 demographics, 4 questionnaire and income, 5 examination, 9 laboratory",
        file="nhanes.npz",
        sha256="01459c86260312063a30daecdcb313ae1f73d91fa7827da810a4ffe4bbeec64d",
        get="it is made of the surveys at https://wwwn.cdc.gov/nchs/nhanes/: X, y, feature_names and costs",
        traps=(
            "the label is made of HbA1c, so neither that nor glucose may be a test, though the file holds both; classes "
            "are 0.64, 0.25 and 0.11; 9 % is missing, insulin in 75 % of rows; a stand-in for the paper's diabetes set, "
            "whose numbers do not apply"
        ),
    ),
    Card(
        name="diabetes",
        title="The paper's diabetes set",
        source="Kachuee et al. (2019), from NHANES; handed out by its authors",
        licence="ask its authors",
        rows=None,
        columns=45,
        classes=3,
        costs="as in the file",
        splits="0.7 / 0.15 / 0.15, stratified, by seed",
        file="diabetes.npz",
        get=(
            "it is not public: ask the authors of Opportunistic Learning (Kachuee et al., 2019), and save X, y and costs "
            "as an .npz"
        ),
        traps="balanced and mean imputed, so it has no missing values; `nhanes` is its public relative",
    ),
    Card(
        name="bank",
        title="Who takes a bank's offer on the telephone? The 15 columns of a published protocol",
        source="UCI bank marketing: https://archive.ics.uci.edu/dataset/222/bank+marketing",
        rows=45_211,
        columns=15,
        splits="0.8 / 0.1 / 0.1, stratified, by seed",
        file="published/bank.npz",
        sha256="679c4af6c5f744dcf77f535af3d562bbc3af1ecb584f35f35c8b9fa24b94951e",
        get="it is made of bank-full.csv: X_sefa, y, names_sefa and categorical, categories as numbers, unknown ones missing",
        traps="12 % say yes; how long the call was is known only when it is over",
    ),
    Card(
        name="california",
        title="In which quarter are the prices of houses here?",
        source="scikit-learn's `fetch_california_housing`, from Pace and Barry (1997)",
        licence="none that we could find; StatLib handed it out",
        rows=20_640,
        columns=8,
        classes=4,
        splits="0.8 / 0.1 / 0.1, stratified, by seed",
        file="published/california.npz",
        sha256="6ce827faa0943fd6fd7f8f95402fabca4b8bcb028e39d72f3d7b6170d570c5c0",
        get="it is made of `fetch_california_housing`: X, names, and y, the quarter of the price",
        traps="latitude and longitude tell much together and little alone",
    ),
    Card(
        name="metabric",
        title="Subtype of a breast cancer from 12 genes",
        source="METABRIC: https://www.cbioportal.org/study/summary?id=brca_metabric",
        licence="research use only",
        rows=1898,
        columns=12,
        classes=6,
        splits="0.8 / 0.1 / 0.1, stratified, by seed",
        file="published/metabric.npz",
        sha256="e13e7b250a0b312f22cb237ebfb2c6953a1328c7da7809a01699e4d35970ecdd",
        get="it is made of METABRIC's expression data: X, names, y, classes and sefa12, the 12 columns of a published protocol",
        traps="190 test rows: differences of a few points are noise",
    ),
)

CARDS = {card.name: card for card in _ALL}


def cards() -> dict[str, Card]:
    """The cards of all named data sets, by name."""
    return dict(CARDS)
