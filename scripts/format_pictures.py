#!/usr/bin/env python3
"""format_pictures.py [BUILD]: regenerates the pictures in docs/images: the page of a training run, and of a recording in each
format.

BUILD is a build folder (default: build/dev) with memprof and examples/nano_gpt. Needs Chromium and pngquant from Debian; the
picture of XLA needs jax from PyPI in this Python and is otherwise left as it is. The recordings are made here:

- xplane: a profile of three steps of a small training run with jax on this machine's CPU;
- torch-snapshot, rmm: a training run of examples/nano_gpt in the format of PyTorch's snapshots and of RMM's log;
- tt-mlir, ttnn-graph: a decoder of four layers as the runtimes would log it, with sizes computed here.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 2**20
LAYERS, WIDTH, TOKENS = 4, 1024, 512
JAX_TRAINING = """
import jax, jax.numpy as jnp, sys
def init(key, width, layers):
    keys = jax.random.split(key, 2 * layers)
    draw = lambda key, *shape: jax.random.normal(key, shape) / width
    return {f"layer_{i}": {"up": draw(keys[2 * i], width, 4 * width), "down": draw(keys[2 * i + 1], 4 * width, width)} for i in range(layers)}
def loss(params, x):
    for name, layer in params.items():
        with jax.named_scope(name):
            x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return jnp.mean(x * x)
@jax.jit
def train_step(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value
params, x = init(jax.random.key(0), 256, 4), jax.random.normal(jax.random.key(1), (512, 256))
train_step(params, x)
with jax.profiler.trace(sys.argv[1]):
    for _ in range(3):
        params, value = train_step(params, x)
    jax.block_until_ready(value)
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"format_pictures: {command[0]} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def nano_gpt_trace(build, folder):
    run(build / "examples/nano_gpt/nano_gpt", "--steps", "3", "--layers", "2", "--d-model", "64", cwd=folder,
        env={**os.environ, "MEMPROF": "1", "MEMPROF_TRACE": "1", "MEMPROF_OUTPUT_DIR": str(folder)})
    return next(folder.glob("*.memtrace"))


def torch_snapshot(memprof, trace, folder):
    out = folder / "nano_gpt.pickle"
    run(memprof, "export", trace, "--format", "torch-snapshot", "-o", out)
    return out


def rmm_log(memprof, trace, folder):
    run(memprof, "export", trace, "--format", "jsonl", "-o", folder / "tables")
    lines = ["Thread,Time,Action,Pointer,Size,Stream"]
    for line in (folder / "tables/events.jsonl").read_text().splitlines():
        event = json.loads(line)
        action = {"allocate": "allocate", "deallocate": "free"}.get(event["kind"])
        seconds, rest = divmod(event["time_ns"], 10**9)
        if action:
            time = f"10:{seconds // 60:02}:{seconds % 60:02}.{rest // 1000:06}"
            lines.append(f"{event['thread']},{time},{action},{event['address']:#x},{event['bytes']},0x0")
    out = folder / "nano_gpt.csv"
    out.write_text("\n".join(lines) + "\n")
    return out


def decoder():
    """The operations of a forward pass: name, location, bytes it takes in DRAM and L1, and bytes that the previous one frees."""
    x, hidden = 2 * TOKENS * WIDTH, 8 * TOKENS * WIDTH
    for layer in range(LAYERS):
        yield "ttnn.rms_norm", f"layer_{layer}/norm", 0, x, 0
        yield "ttnn.matmul", f"layer_{layer}/up", hidden, 0, x
        yield "ttnn.gelu", f"layer_{layer}/gelu", hidden, 0, 0
        yield "ttnn.matmul", f"layer_{layer}/down", x, 0, 2 * hidden
        yield "ttnn.add", f"layer_{layer}/residual", x, 0, x


def tt_mlir_log(folder):
    banks = {"DRAM": (12, 1020), "L1": (64, 1.3), "L1 SMALL": (64, 0.031), "TRACE": (12, 0)}
    held = {"DRAM": 16 * WIDTH * WIDTH * LAYERS, "L1": 0, "L1 SMALL": 0, "TRACE": 0}
    lines = ["RuntimeTTNN | Starting execution of program: main"]

    def state():
        for kind, (count, total) in banks.items():
            used = held[kind] / count / MIB
            lines.append(f"RuntimeTTNN | Device {kind} memory state: MemoryView{{numBanks: {count}, totalBytesPerBank: {total:.3f} MB, "
                         f"totalBytesAllocatedPerBank: {used:.3f} MB, totalBytesFreePerBank: {total - used:.3f} MB, "
                         f"largestContiguousBytesFreePerBank: {(total - used) * 0.8:.3f} MB}}")

    for number in range(3):
        for name, place, dram, l1, freed in decoder():
            shape = f"tensor<{TOKENS}x{4 * WIDTH if dram == 8 * TOKENS * WIDTH else WIDTH}xbf16>"
            lines.append(f'RuntimeTTNN | Executing operation: %{number} = "{name}"(%arg0) : ({shape}) -> {shape} loc("{place}")')
            lines.append("RuntimeTTNN | Device memory state before operation " + name)
            state()
            held["DRAM"] += dram
            held["L1"] += l1
            if freed:
                lines.append(f'RuntimeTTNN | Executing operation: "ttnn.deallocate"(%{number}) : ({shape}) -> () loc("{place}")')
                lines.append("RuntimeTTNN | Device memory state before operation ttnn.deallocate")
                state()
                from_l1 = min(freed, held["L1"])
                held["L1"] -= from_l1
                held["DRAM"] -= freed - from_l1
        held["DRAM"] = 16 * WIDTH * WIDTH * LAYERS
    lines += ["RuntimeTTNN | Finished execution of program: main", "RuntimeTTNN | Device memory state after submit"]
    state()
    out = folder / "decoder.log"
    out.write_text("\n".join(lines) + "\n")
    return out


def ttnn_graph(folder):
    nodes, live = [], []

    def add(kind, params, connections=()):
        nodes.append({"counter": len(nodes), "node_type": kind, "params": params, "connections": list(connections)})
        return len(nodes) - 1

    def allocate(size, memory):
        buffer = add("buffer", {"size": size, "type": memory}, [])
        params = {"size": size, "type": memory, "page_size": 2048, "num_cores": 64, "max_size_per_bank": size // 64}
        add("buffer_allocate", params, [buffer])
        live.append((buffer, size, memory))

    add("capture_start", None)
    for name, place, dram, l1, freed in decoder():
        function = f"{name.replace('.', '::')} {place.replace('/', '.')}"
        add("function_start", {"name": function, "inputs": 2})
        for index, size in enumerate((4096, 8192)):
            add("circular_buffer_allocate", {"size": size * (index + 2), "core_range_set": "{[0-0 - 7-7]}", "globally_allocated": "0"})
        allocate(dram or l1, "DRAM" if dram else "L1")
        add("circular_buffer_deallocate_all", {})
        while freed > 0 and len(live) > 1:
            buffer, size, memory = live.pop(0)
            add("buffer_deallocate", {"size": size, "type": memory}, [buffer])
            freed -= size
        add("function_end", {"name": function})
    out = folder / "decoder.json"
    out.write_text(json.dumps(nodes))
    return out


def xplane(folder):
    try:
        import jax  # noqa: F401
    except ImportError:
        print("unchanged: the picture of XLA, which needs jax from PyPI")
        return None
    script = folder / "train.py"
    script.write_text(JAX_TRAINING)
    run(sys.executable, script, folder / "profile")
    return next((folder / "profile").rglob("*.xplane.pb"))


def picture(memprof, chromium, name, source, folder, *more):
    trace = folder / f"{name}.memtrace"
    run(memprof, "import", name, source, "-o", trace, *more)
    picture_of_trace(memprof, chromium, trace, f"import_{name.replace('-', '_')}", folder)


def picture_of_trace(memprof, chromium, trace, name, folder, *more):
    page, shot = folder / f"{name}.html", folder / f"{name}.png"
    run(memprof, "report", trace, "-o", page, *more)
    run(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,860", f"--screenshot={shot}",
        f"--user-data-dir={folder / 'chromium'}", "--virtual-time-budget=5000", page.as_uri())
    out = ROOT / "docs/images" / f"{name}.png"
    out.parent.mkdir(exist_ok=True)
    run("pngquant", "--force", "--strip", "--speed", "1", "--quality", "40-90", "48", "--output", out, shot)
    print(f"{out.relative_to(ROOT)}: {out.stat().st_size} bytes")


def main():
    build = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/dev").resolve()
    memprof = build / "tools/memprof/memprof"
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium or not shutil.which("pngquant"):
        sys.exit("format_pictures: chromium and pngquant are needed (apt-get install chromium pngquant)")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        profile = xplane(folder)
        if profile:
            picture(memprof, chromium, "xplane", profile, folder, "--module", "jit_train_step")
        trace = nano_gpt_trace(build, folder)
        picture_of_trace(memprof, chromium, trace, "page", folder, "--title", "nano_gpt: 3 steps")
        picture(memprof, chromium, "torch-snapshot", torch_snapshot(memprof, trace, folder), folder)
        picture(memprof, chromium, "rmm", rmm_log(memprof, trace, folder), folder)
        picture(memprof, chromium, "tt-mlir", tt_mlir_log(folder), folder)
        picture(memprof, chromium, "ttnn-graph", ttnn_graph(folder), folder, "--per-core")


main()
