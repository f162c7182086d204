// Graphs, as far as stream capture makes them: a sequence of nodes that can be run again.
#include "driver.hpp"

using namespace stand_in;

namespace {

Graph& graph_of(Driver& driver, CUgraph handle) {
    auto* graph = driver.graphs.find(handle);
    require(graph != nullptr);
    return *graph;
}

CUresult instantiate(const char* name, CUgraphExec* out, CUgraph handle) {
    return call(name, [&](Driver& driver) {
        require(out != nullptr);
        auto* exec = driver.graph_execs.add();
        exec->nodes = graph_of(driver, handle).nodes;
        *out = reinterpret_cast<CUgraphExec>(exec);
    });
}

}  // namespace

CUresult CUDAAPI cuGraphCreate(CUgraph* out, unsigned int flags) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr && flags == 0);
        *out = reinterpret_cast<CUgraph>(driver.graphs.add());
    });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
    return call(__func__, [&](Driver& driver) { driver.graphs.remove(&graph_of(driver, handle)); });
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
    return call(__func__, [&](Driver& driver) {
        require(count != nullptr);
        const auto& all = graph_of(driver, handle).nodes;
        if (nodes == nullptr) {
            *count = all.size();
            return;
        }
        for (std::size_t i = 0; i < *count; ++i)
            nodes[i] = i < all.size() ? reinterpret_cast<CUgraphNode>(all[i]) : nullptr;
        *count = std::min(*count, all.size());
    });
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    return call(__func__, [&](Driver& driver) {
        const auto* node = driver.graph_nodes.find(handle);
        require(node != nullptr && type != nullptr);
        *type = node->type;
    });
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
    return instantiate(__func__, out, graph);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
    if (params != nullptr) {
        params->hErrNode_out = nullptr;
        params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    }
    return instantiate(__func__, out, graph);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
    return call(__func__, [&](Driver& driver) {
        auto* exec = driver.graph_execs.find(handle);
        require(exec != nullptr);
        driver.graph_execs.remove(exec);
    });
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        require(driver.graph_execs.find(handle) != nullptr);
        driver.stream(stream);
    });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    return call(__func__, [&](Driver& driver) {
        const auto* exec = driver.graph_execs.find(handle);
        require(exec != nullptr);
        auto& stream = driver.stream(stream_handle);
        driver.check_implicit_dependency(stream);
        // The real driver runs freed code when a library was unloaded under a graph; we say so.
        for (const auto* node : exec->nodes)
            require(!node->launch || driver.kernels.find(node->launch->kernel) != nullptr,
                    CUDA_ERROR_INVALID_HANDLE);
        for (const auto* node : exec->nodes) {
            if (driver.add_to_capture(stream, *node))
                continue;
            if (node->launch) {
                auto record = *node->launch;
                record.launch.captured = 0;
                record.launch.replayed = 1;
                record.launch.stream = stream_handle;
                driver.remember(std::move(record));
            } else if (node->work) {
                node->work();
            }
        }
    });
}
