// What stands behind the driver's handles.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cubin.hpp"
#include "device.hpp"
#include "stand_in_cuda.h"

namespace stand_in {

struct Graph;
struct Capture;
struct Stream;

struct Context {
    const Device* device = nullptr;
    bool primary = true;
    int retains = 0;
    unsigned flags = 0;
    bool alive = false;
    Stream* legacy_stream = nullptr;  ///< stands for the handles NULL and CU_STREAM_LEGACY
    Stream* thread_stream = nullptr;  ///< stands for CU_STREAM_PER_THREAD
};

struct Stream {
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    bool legacy = false;
    std::shared_ptr<Capture> capture = nullptr;
    std::size_t operations = 0;  ///< captured into this stream since it joined the capture
    std::size_t joined = 0;      ///< of these, how many the origin has waited for
};

/// One capture sequence: an origin stream and those that joined it through events.
struct Capture {
    Stream* origin = nullptr;
    Graph* graph = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;
    unsigned long long id = 0;
    std::vector<Stream*> streams;
    bool invalidated = false;
};

struct Event {
    Context* context = nullptr;
    unsigned flags = 0;
    bool recorded = false;
    std::chrono::steady_clock::time_point time;
    std::shared_ptr<Capture> capture = nullptr;  ///< recorded in a capturing stream
    Stream* stream = nullptr;
    std::size_t operations = 0;
};

struct Allocation {
    std::size_t bytes = 0;
    Context* context = nullptr;  ///< null: host memory
};

/// Attributes of a kernel that can be set, per device.
struct KernelAttributes {
    std::optional<int> max_dynamic_smem;
    int carveout = -1;
    CubinDim cluster{};
    bool nonportable = false;
    int scheduling_policy = 0;
};

/// A CUlibrary, or a CUmodule when it belongs to a context.
struct Library {
    Cubin cubin;
    /// Why nothing in it can be used; it has no kernels then.
    CUresult problem = CUDA_SUCCESS;
    Context* context = nullptr;
    std::vector<struct Kernel*> kernels;
};

/// A CUkernel.
struct Kernel {
    Library* library = nullptr;
    const CubinKernel* code = nullptr;
    std::map<int, KernelAttributes> attributes{};  ///< by device ordinal
    std::map<Context*, struct Function*> functions{};
};

/// A CUfunction.
struct Function {
    Kernel* kernel = nullptr;
    Context* context = nullptr;
};

/// A launch as it is recorded.
struct Record {
    dj_stand_in_cuda_launch_t launch{};
    std::string name;
    std::vector<std::string> arguments;
    Kernel* kernel = nullptr;
};

struct GraphNode {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::optional<Record> launch;
    std::function<void()> work;  ///< of copies and memsets
};

struct Graph {
    std::vector<GraphNode*> nodes;
};

struct GraphExec {
    std::vector<GraphNode*> nodes;
};

}  // namespace stand_in
