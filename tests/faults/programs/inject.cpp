// Preloaded into a program, makes one of its file operations fail. Only operations on paths that
// contain DJ_INJECT_PATH count. From the environment:
//     DJ_INJECT_OPERATION  open_read, open_write, read, write, short_write, fsync, close, rename,
//                          mkdir, stat, unlink, lock
//     DJ_INJECT_ERROR      an errno
//     DJ_INJECT_NTH        which one fails (from 1); with DJ_INJECT_REST=1 all after it as well
//     DJ_INJECT_REPORT     a file that is made when one failed
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> seen{0};

template <typename Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool fails(const char* operation, const char* path) {
    const char* wanted = std::getenv("DJ_INJECT_OPERATION");
    const char* where = std::getenv("DJ_INJECT_PATH");
    if (wanted == nullptr || where == nullptr || std::strcmp(wanted, operation) != 0 ||
        path == nullptr || std::strstr(path, where) == nullptr)
        return false;
    const long nth = std::atol(std::getenv("DJ_INJECT_NTH"));
    const long number = ++seen;
    const bool rest = std::getenv("DJ_INJECT_REST") != nullptr;
    if (number != nth && !(rest && number > nth))
        return false;
    const int report = real<int(const char*, int, ...)>("open")(std::getenv("DJ_INJECT_REPORT"),
                                                                O_WRONLY | O_CREAT, 0600);
    real<int(int)>("close")(report);
    errno = std::atoi(std::getenv("DJ_INJECT_ERROR"));
    return true;
}

bool fails(const char* operation, int fd) {
    char link[64], path[4096];
    std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const auto size = ::readlink(link, path, sizeof(path) - 1);
    if (size < 0)
        return false;
    path[size] = '\0';
    return fails(operation, path);
}

int do_open(const char* name, const char* path, int flags, mode_t mode) {
    if (fails((flags & O_ACCMODE) == O_RDONLY ? "open_read" : "open_write", path))
        return -1;
    return real<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    return do_open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const auto mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    return do_open("open64", path, flags, mode);
}

ssize_t read(int fd, void* buffer, size_t size) {
    if (fails("read", fd))
        return -1;
    return real<ssize_t(int, void*, size_t)>("read")(fd, buffer, size);
}

ssize_t write(int fd, const void* buffer, size_t size) {
    if (fails("write", fd))
        return -1;
    if (size > 1 && fails("short_write", fd))
        size /= 2;
    return real<ssize_t(int, const void*, size_t)>("write")(fd, buffer, size);
}

int fsync(int fd) {
    if (fails("fsync", fd))
        return -1;
    return real<int(int)>("fsync")(fd);
}

int close(int fd) {
    // As the kernel does: the descriptor is gone, whatever is reported.
    const bool failed = fails("close", fd);
    const int error = errno;
    const int result = real<int(int)>("close")(fd);
    if (!failed)
        return result;
    errno = error;
    return -1;
}

int rename(const char* from, const char* to) {
    if (fails("rename", to))
        return -1;
    return real<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) {
    if (fails("mkdir", path))
        return -1;
    return real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int stat(const char* path, struct stat* info) {
    if (fails("stat", path))
        return -1;
    return real<int(const char*, struct stat*)>("stat")(path, info);
}

int lstat(const char* path, struct stat* info) {
    if (fails("stat", path))
        return -1;
    return real<int(const char*, struct stat*)>("lstat")(path, info);
}

int fstat(int fd, struct stat* info) {
    if (fails("stat", fd))
        return -1;
    return real<int(int, struct stat*)>("fstat")(fd, info);
}

int unlink(const char* path) {
    if (fails("unlink", path))
        return -1;
    return real<int(const char*)>("unlink")(path);
}

int unlinkat(int directory, const char* path, int flags) {
    if (path[0] == '/' ? fails("unlink", path) : fails("unlink", directory))
        return -1;
    return real<int(int, const char*, int)>("unlinkat")(directory, path, flags);
}

int remove(const char* path) {
    if (fails("unlink", path))
        return -1;
    return real<int(const char*)>("remove")(path);
}

int rmdir(const char* path) {
    if (fails("unlink", path))
        return -1;
    return real<int(const char*)>("rmdir")(path);
}

int fcntl(int fd, int command, ...) {
    va_list list;
    va_start(list, command);
    void* argument = va_arg(list, void*);
    va_end(list);
    if (command == F_OFD_SETLK && fails("lock", fd))
        return -1;
    return real<int(int, int, ...)>("fcntl")(fd, command, argument);
}

}  // extern "C"
