#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <deep_jit/backend/cuda/backend.hpp>
using namespace deep_jit;
static CUlaunchConfig config{};
static CUfunction function;
static void* args[4];
static float* out; static const float* in; static int number = 3; static float factor = 2;
static decltype(&cuLaunchKernelEx) call;
static std::shared_ptr<cuda::Kernel> kernel; static Runtime<CUDA>* jit;
static PyObject* setup(PyObject*, PyObject* const* a, Py_ssize_t) {
    jit = new Runtime<CUDA>(Config("/", "PROBE"));
    kernel = jit->compile("nothing", PyUnicode_AsUTF8(a[0]));
    call = cuda::driver::lazy_cuLaunchKernelEx.get();
    function = reinterpret_cast<CUfunction>(kernel->kernel_handle);
    config.gridDimX = config.gridDimY = config.gridDimZ = 1; config.blockDimX = 32; config.blockDimY = config.blockDimZ = 1;
    config.hStream = reinterpret_cast<CUstream>(PyLong_AsSize_t(a[3]));
    out = reinterpret_cast<float*>(PyLong_AsSize_t(a[1])); in = reinterpret_cast<const float*>(PyLong_AsSize_t(a[2]));
    args[0] = &out; args[1] = &in; args[2] = &number; args[3] = &factor;
    Py_RETURN_NONE;
}
static PyObject* nothing(PyObject*, PyObject* const*, Py_ssize_t) { Py_RETURN_NONE; }
static PyObject* bare(PyObject*, PyObject* const*, Py_ssize_t) { call(&config, function, args, nullptr); Py_RETURN_NONE; }
static PyObject* bare_nogil(PyObject*, PyObject* const*, Py_ssize_t) { Py_BEGIN_ALLOW_THREADS call(&config, function, args, nullptr); Py_END_ALLOW_THREADS Py_RETURN_NONE; }
static PyObject* gil_only(PyObject*, PyObject* const*, Py_ssize_t) { Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS Py_RETURN_NONE; }
static PyObject* stream_only(PyObject*, PyObject* const*, Py_ssize_t) { return PyLong_FromSize_t((size_t)cuda::current_stream()); }
static PyObject* djit(PyObject*, PyObject* const*, Py_ssize_t) { jit->launch(kernel, {.stream = config.hStream, .grid_dim = dim3(1), .block_dim = dim3(32)}, out, in, number, factor); Py_RETURN_NONE; }
static PyObject* djit_cur(PyObject*, PyObject* const*, Py_ssize_t) { jit->launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(32)}, out, in, number, factor); Py_RETURN_NONE; }
#define M(n) {#n, (PyCFunction)(void*)n, METH_FASTCALL, nullptr}
static PyMethodDef methods[] = {M(setup), M(nothing), M(bare), M(bare_nogil), M(gil_only), M(stream_only), M(djit), M(djit_cur), {}};
static PyModuleDef def{PyModuleDef_HEAD_INIT, "probe", nullptr, -1, methods, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_probe() { return PyModule_Create(&def); }
