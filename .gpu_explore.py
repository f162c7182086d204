import torch, cupy, time
print(torch.__version__, cupy.__version__)
t = torch.zeros(8, device="cuda"); c = cupy.zeros(8, dtype=cupy.float32)
for o in (t, c):
    print(type(o), [n for n in dir(type(o)) if "dlpack" in n or "array_interface" in n], [b.__module__ + "." + b.__qualname__ for b in type(o).__mro__])
import cupy_backends.cuda.stream as s
print([n for n in dir(s)], list(getattr(s, "__pyx_capi__", {}).items()))
print([n for n in dir(torch.cuda.Stream()) if "stream" in n])
def tm(f, n=200000):
    a = time.perf_counter_ns()
    for _ in range(n): f()
    return (time.perf_counter_ns() - a) / n
print("data_ptr", tm(t.data_ptr), "cai torch", tm(lambda: t.__cuda_array_interface__, 20000), "cai cupy", tm(lambda: c.__cuda_array_interface__), "cupy data.ptr", tm(lambda: c.data.ptr), "cupy stream", tm(lambda: cupy.cuda.get_current_stream().ptr), "call", tm(lambda: None))
p = torch.nn.Parameter(t)
