"""What each command shows below its options with --help."""

from __future__ import annotations

EXAMPLES = {
    "fit": """examples:
  askwise fit --data thyroid
  askwise fit cases.csv --target diagnosis --costs costs.csv --average-budget 12 --out model.askwise
  askwise fit cases.csv --target label --hard-budget 40 --known age,sex --time-limit 5m
  askwise fit cases.csv --target label --test new_cases.csv
  askwise fit cases.csv --target label --ids patient --ignore notes,photo --categorical ward
  askwise fit cases.csv --target label --external our_system --external-needs age,scan
  askwise fit cases.csv --target label --average-budget 12 --resume        (goes on after Ctrl-C)

files:
  --costs    CSV with the columns test,cost
  --setup    CSV with the columns setup,cost,tests    (tests separated by ;)
  --derived  CSV with the columns test,sources        (separated by ;)
  --reveals  CSV with the columns test,columns        (separated by ;)
  --loss     CSV: first column the true class, then one column per decision""",
    "predict": """examples:
  askwise predict model.askwise cases.csv --out decisions.csv
  askwise predict model.askwise cases.csv --ids patient --average-budget 8 --json
  askwise predict model.askwise large.parquet --out decisions.parquet --engine dask""",
    "evaluate": """examples:
  askwise evaluate model.askwise cases.csv --target diagnosis
  askwise evaluate model.askwise --data thyroid --json""",
    "frontier": """examples:
  askwise frontier model.askwise
  askwise frontier model.askwise --plot curve.svg""",
    "inspect": """examples:
  askwise inspect model.askwise
  askwise inspect model.askwise --json""",
    "ask": """examples:
  askwise ask model.askwise --known age=63 --budget 40
  askwise ask model.askwise --case-id A-17 --trace a17.json
  askwise ask model.askwise --simulate cases.csv --ids patient""",
    "export": """examples:
  askwise export model.askwise --out model.npz
  askwise export model.askwise --average-budget 8 --out model.onnx""",
    "report": """examples:
  askwise report model.askwise --out report
  askwise report model.askwise --test new_cases.csv --target diagnosis --average-budget 8 --out report

without --test it shows what the fit measured; a page about benches is made by askwise bench report""",
    "serve": """examples:
  askwise serve model.askwise
  askwise serve thyroid.askwise pima.askwise --port 8080
  ASKWISE_TOKEN=... askwise serve model.askwise --host 0.0.0.0 --rate 20

the page is at http://127.0.0.1:8000/, the JSON API is described at http://127.0.0.1:8000/docs""",
    "datasets": """examples:
  askwise datasets
  askwise datasets thyroid""",
    "methods": """examples:
  askwise methods""",
    "bench": """examples:
  askwise bench plan.toml
  askwise bench plan.toml --processes 8 --out rows.jsonl
  askwise bench plan.toml --dry-run
  askwise bench plan.toml --engine dask://10.0.0.5:8786
  askwise bench report plan.jsonl                       (a page about the rows)""",
    "bench report": """examples:
  askwise bench report plan.jsonl
  askwise bench report small.jsonl large.jsonl --out comparison.html --against family""",
}
