// Stream capture: who may do what while a stream records a graph.
#include <algorithm>

#include "driver.hpp"

namespace stand_in {

bool Driver::capture_forbids_unsafe_calls(const Capture& capture) {
    const auto mode = thread().capture_mode;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (capture.thread == std::this_thread::get_id())
        return capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

void Driver::invalidate(const std::shared_ptr<Capture>& capture) {
    capture->invalidated = true;  // until cuStreamEndCapture on its origin
    graphs.remove(capture->graph);
    std::erase(captures, capture);
}

void Driver::refuse_during_capture() {
    std::vector<std::shared_ptr<Capture>> spoilt;
    for (const auto& capture : captures)
        if (capture_forbids_unsafe_calls(*capture))
            spoilt.push_back(capture);
    for (const auto& capture : spoilt) invalidate(capture);
    require(spoilt.empty(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void Driver::check_implicit_dependency(const Stream& stream) {
    if (!stream.legacy)
        return;
    std::vector<std::shared_ptr<Capture>> spoilt;
    for (const auto& capture : captures)
        for (const auto* member : capture->streams)
            if (member->context == stream.context && (member->flags & CU_STREAM_NON_BLOCKING) == 0)
                spoilt.push_back(capture);
    for (const auto& capture : spoilt) invalidate(capture);
    require(spoilt.empty(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

bool Driver::add_to_capture(Stream& stream, GraphNode node) {
    if (stream.capture == nullptr)
        return false;
    require(!stream.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    auto* stored = graph_nodes.add();
    *stored = std::move(node);
    stream.capture->graph->nodes.push_back(stored);
    ++stream.operations;
    return true;
}

namespace {

CUresult capture_info(const char* name, CUstream handle, CUstreamCaptureStatus* status,
                      cuuint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,
                      std::size_t* count) {
    return call(name, [&](Driver& driver) {
        require(status != nullptr);
        const auto& stream = driver.stream(handle);
        *status = stream.capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
                  : stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            return;
        auto& nodes = stream.capture->graph->nodes;
        if (id != nullptr)
            *id = stream.capture->id;
        if (graph != nullptr)
            *graph = reinterpret_cast<CUgraph>(stream.capture->graph);
        const bool any = !nodes.empty();  // the stand-in keeps a graph as a sequence
        if (dependencies != nullptr)
            *dependencies = any ? reinterpret_cast<const CUgraphNode*>(&nodes.back()) : nullptr;
        if (count != nullptr)
            *count = any ? 1 : 0;
    });
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    return call(__func__, [&](Driver& driver) {
        require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        auto& stream = driver.stream(handle);
        require(!stream.legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        require(stream.capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
        stream.capture = std::make_shared<Capture>(Capture{&stream,
                                                           driver.graphs.add(),
                                                           mode,
                                                           std::this_thread::get_id(),
                                                           driver.next_capture++,
                                                           {&stream},
                                                           false});
        stream.operations = stream.joined = 0;
        driver.captures.push_back(stream.capture);
    });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    return call(__func__, [&](Driver& driver) {
        require(graph != nullptr);
        *graph = nullptr;
        auto& stream = driver.stream(handle);
        require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
        const auto capture = stream.capture;
        require(capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        const bool wrong_thread = capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                                  capture->thread != std::this_thread::get_id();
        const bool unjoined =
            std::any_of(capture->streams.begin(), capture->streams.end(),
                        [&](const Stream* s) { return s != &stream && s->joined < s->operations; });
        auto* result = capture->graph;
        const bool invalidated = capture->invalidated;
        for (auto* member : capture->streams) member->capture = nullptr;
        std::erase(driver.captures, capture);
        require(!invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (wrong_thread || unjoined) {  // it has ended all the same
            driver.graphs.remove(result);
            fail(wrong_thread ? CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                              : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        }
        *graph = reinterpret_cast<CUgraph>(result);
    });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    return capture_info(__func__, handle, status, nullptr, nullptr, nullptr, nullptr);
}

STAND_IN_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status,
                                                   cuuint64_t* id, CUgraph* graph,
                                                   const CUgraphNode** dependencies,
                                                   std::size_t* count) {
    return capture_info(__func__, handle, status, id, graph, dependencies, count);
}

STAND_IN_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                                   cuuint64_t* id, CUgraph* graph,
                                                   const CUgraphNode** dependencies,
                                                   const CUgraphEdgeData** edges,
                                                   std::size_t* count) {
    if (edges != nullptr)
        *edges = nullptr;
    return capture_info(__func__, handle, status, id, graph, dependencies, count);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return call(__func__, [&](Driver& driver) {
        require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
                *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        std::swap(*mode, driver.thread().capture_mode);
    });
}
