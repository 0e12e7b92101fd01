"""A study to begin with, as `specworkbench study example` prints it."""

EXAMPLE = '''\
# A study: every combination of the values below is a cell. A cell decodes its prompts plainly and speculatively, in
# turns, so that each has its own baseline.
#   specworkbench study run example.toml --out example            (--dry-run only shows the plan)
#   specworkbench study table example
#   specworkbench study plot example --x gamma --y speedup_measured --color proposer --facet temperature
# Stopped, killed or with more values added: the same command goes on where it was.

# ---- axes: one value, or a list of them ----

target = ["embedded"]            # embedded, a hub id, a local folder, a GGUF file
proposer = [                     # NAME[:WEIGHTS][,SETTING=VALUE...]; specworkbench proposers lists them
    "draft_model:embedded/draft-m",
    "draft_model:embedded/draft-s",
    "suffix",
]
gamma = [1, 2, 4]                # tokens proposed per round; with a controller, at most
temperature = [0, 1]             # 0 is greedy
bucket = ["code", "prose"]       # of the prompts; "all": all of them in one cell
max_new_tokens = [48]            # tokens decoded of each prompt

# controller = ["constant", "optimal", "heuristic"]   # who chooses gamma; specworkbench controllers lists them
# rule = ["token", "block", "lenient,leniency=0.9"]   # default: greedy at temperature 0, token, tree for trees
# top_p = [1.0, 0.9]             # 1 keeps all
# top_k = [0, 50]                # 0 keeps all
# prompt_length = [0, 128, 512]  # tokens: cut at the beginning, or filled up in front with the prompts before it in its
#                                # bucket; 0 leaves prompts as they are
# dtype = ["default", "bfloat16"]
# engine = ["eager", "compiled"]
# seed = [0, 1, 2]
# batch = [1]                    # one sequence is decoded at a time
# quantisation = ["none", "int8"]  # of the target, on a CPU; with fused = false and products = false for both alike

# ---- settings of all cells ----

per_bucket = 2                   # the first so many prompts of each bucket; 0: all of them
ignore_eos = true                # go on after an end of text, so that every output has the same length
# prompts = "questions.jsonl"    # default: embedded or general, what suits the target
# chat = false                   # put prompts through the chat template
# device = "cuda"                # default: the best there is
# traces = true                  # keep the traces of every cell
'''
