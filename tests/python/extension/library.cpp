// A kernel library as a pybind11 extension that uses only documented names. Compiled twice, under
// two names.
#include <pybind11/pybind11.h>

#include <deep_jit/backend/host/backend.hpp>
#include <deep_jit/python_api.hpp>

// A namespace of its own for each library: the dynamic linker merges inline variables of one name.
namespace LIBRARY_NAME {

inline deep_jit::LazyInit<deep_jit::Runtime<deep_jit::Host>> jit(nullptr);

}  // namespace LIBRARY_NAME

PYBIND11_MODULE(LIBRARY_NAME, module) {
    namespace library = LIBRARY_NAME;
    deep_jit::register_python_api(module, library::jit);
    module.def("init_jit", [](const std::string& root) {
        library::jit = deep_jit::create_lazy_jit<deep_jit::Host>(
            deep_jit::Config(root, LIBRARY_PREFIX, "signature-1"));
    });
    module.def("initialized", [] { return library::jit.initialized(); });
    module.def("runtime_address", [] { return reinterpret_cast<std::uintptr_t>(&*library::jit); });
    module.def("compile_from_cpp", [](const std::string& source) {
        return library::jit->compile("from_cpp", source)->name();
    });
}
