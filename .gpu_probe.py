import sys, time, statistics
sys.path[:0] = ["build/gpu", "benchmarks"]
import torch, probe, deep_jit, python_launch as pl
st = torch.cuda.Stream()
out, inp = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
with torch.cuda.stream(st):
    probe.setup(pl.SOURCE, out.data_ptr(), inp.data_ptr(), st.cuda_stream)
    k = deep_jit.Runtime("cuda").compile("nothing", pl.SOURCE)
    p = k[1, 32]; ps = k.prepare(grid=1, block=32, stream=st)
    a, b = out.data_ptr(), inp.data_ptr()
    rows = {n: getattr(probe, n) for n in ("nothing", "gil_only", "stream_only", "bare", "bare_nogil", "djit", "djit_cur")}
    rows |= {"prep(addr)": lambda: p(a, b, 3, 2.0), "prep_s(addr)": lambda: ps(a, b, 3, 2.0), "prep_s(tensor)": lambda: ps(out, inp, 3, 2.0), "prep(tensor)": lambda: p(out, inp, 3, 2.0), "k[](tensor)": lambda: k[1, 32](out, inp, 3, 2.0), "lambda": lambda: probe.nothing(a, b, 3, 2.0), "lambda bare": lambda: probe.bare(a, b, 3, 2.0)}
    res = {n: [] for n in rows}
    for r in range(80):
        for n, f in rows.items():
            res[n].append(pl.time_each(f)); torch.cuda.synchronize()
    for n, v in res.items(): print(f"{n:20} {statistics.median(v):9.1f} {min(v):9.1f}")
