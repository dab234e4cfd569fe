// What a compiled program brings along: stacks for its agents, tables of types, doors for `native.py`.
#include <pto/machine/ranks.hpp>
#include <gtest/gtest.h>
#include <csignal>
#include <dlfcn.h>
#include <exception>
#include <execinfo.h>
#include <map>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

// Variables of `[[block_local]]` lie in one section: every agent has its own values of them.
extern "C" char __start_pto_block_local[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_pto_block_local[] __attribute__((weak, visibility("hidden")));

namespace pto::machine {
Agent* now = nullptr;
std::string missingFile;  // of the test that runs, the first
static int64_t* amounts = nullptr;  // operations of each basic block, by its place in the code; null unless they are counted
namespace {
constexpr size_t STACK = size_t(8) << 20, ROOM = 1 << 16, SIGNAL_STACK = 1 << 18;
const size_t GUARD = size_t(sysconf(_SC_PAGESIZE));
constexpr int DEPTH = 12;
struct Fiber {
    ucontext_t own, back;
    char* stack;
    Call call;
    const void* closure;
    Status status;
    std::string error;
    bool ended = false;
    std::vector<char> locals;  // its values of [[block_local]] variables while another agent runs
    std::vector<int64_t> users, unused;  // of each slot of its register file, how many; and slots without any
};
size_t localBytes() { return size_t(__stop_pto_block_local - __start_pto_block_local); }
std::vector<char> localsNow() { return {__start_pto_block_local, __stop_pto_block_local}; }
std::vector<TypeFacts>& types() { static std::vector<TypeFacts> v; return v; }
std::vector<std::string>& enums() { static std::vector<std::string> v; return v; }
struct Known { Call call; int side; };
std::map<std::string, Known>& kernels() { static std::map<std::string, Known> m; return m; }
std::map<char*, size_t>& memory() { static std::map<char*, size_t> m; return m; }
std::vector<std::vector<void*>>& paths() { static std::vector<std::vector<void*>> v; return v; }
int64_t changes = 0;  // of device memory

Fiber* fiber(Agent* a) { return static_cast<Fiber*>(a->fiber); }
void body()
{
    Fiber* f = fiber(now);
    try {
        f->call(f->closure);
        f->status = DONE;
    } catch (const std::exception& e) {
        f->error = e.what();
        f->status = FAILED;
    } catch (...) {
        f->error = "an exception that is no std::exception";
        f->status = FAILED;
    }
    f->ended = true;
    swapcontext(&f->own, &f->back);
}
char* base()
{
    static char* found = [] { Dl_info i; return dladdr((void*)&body, &i) ? (char*)i.dli_fbase : nullptr; }();
    return found;
}
// Tell the parent: the signal, the last instruction, then the calls that led to the crash, innermost first.
void crashed(int number)
{
    char text[4096];
    long at = now && now->last ? (char*)now->last - base() : 0;
    int n = std::snprintf(text, sizeof text, "\npto-crash %d %lx\n", number, at);
    if (write(2, text, size_t(n)) < 0) {}
    void* calls[32];
    for (int i = 0, count = backtrace(calls, 32); i < count; ++i) {
        Dl_info of;
        if (!dladdr(calls[i], &of)) continue;
        n = std::snprintf(text, sizeof text, "pto-call %lx %s\n", (char*)calls[i] - (char*)of.dli_fbase, of.dli_fname);
        if (n < int(sizeof text) && write(2, text, size_t(n)) < 0) {}
    }
    _exit(128 + number);
}
// Zeroed pages, or an exception where there are no more.
char* pages(size_t bytes, int more = 0)
{
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(p);
}
} // namespace

int64_t typeNumber(const TypeFacts& f) { types().push_back(f); return int64_t(types().size()) - 1; }
int64_t enumNumber(const char* text) { enums().push_back(text); return int64_t(enums().size()) - 1; }
int64_t numbersType(const char* element, TileType where, int64_t rows, int64_t pitch)
{
    static std::map<std::vector<int64_t>, int64_t> known;
    auto [at, fresh] = known.try_emplace({int64_t(element), int64_t(where), rows, pitch}, 0);
    if (fresh) at->second = where == TileType::Ctrl ? typeNumber({element, 1})
        : typeNumber({element, 0, int64_t(where), rows, pitch, 0, 0, 512});
    return at->second;
}
bool addKernel(const char* key, Call call, int side) { kernels()[key] = {call, side}; return true; }

// The chain of calls that leads to an instruction, as a number.
int64_t pathNumber(void** frame, void* caller)
{
    static std::map<std::vector<void*>, int64_t> known;
    static std::vector<void*> path;
    path.assign(1, caller);
    char* low = fiber(now) ? fiber(now)->stack : nullptr;
    for (int depth = 1; low && depth < DEPTH; ++depth) {
        frame = static_cast<void**>(frame[0]);
        if ((char*)frame < low || (char*)frame > low + STACK - 64 || !frame[1]) break;
        path.push_back(frame[1]);
    }
    auto [at, fresh] = known.try_emplace(path, int64_t(paths().size()));
    if (fresh) paths().push_back(path);
    return at->second;
}
int64_t newSlot()
{
    if (!now) makeRoom(512);
    Fiber* f = fiber(now);
    if (f->unused.empty()) f->unused.push_back(int64_t(f->users.size())), f->users.push_back(0);
    const int64_t slot = f->unused.back();  // the last one that was given back: loops use the same slots again
    f->unused.pop_back();
    f->users[size_t(slot)] = 1;
    return slot;
}
void shareSlot(int64_t slot) { if (slot >= 0 && now) ++fiber(now)->users[size_t(slot)]; }
void dropSlot(int64_t slot)
{
    if (slot >= 0 && now && !--fiber(now)->users[size_t(slot)]) fiber(now)->unused.push_back(slot);
}
bool isShared(int64_t slot) { return fiber(now)->users[size_t(slot)] > 1; }
void stop(Status status)
{
    if (!now || !now->fiber) return;
    Agent* self = now;
    fiber(self)->status = status;
    swapcontext(&fiber(self)->own, &fiber(self)->back);
    now = self;
}
void makeRoom(int64_t)
{
    if (!now) { std::fprintf(stderr, "pto-machine: an instruction before the machine has started\n"); std::abort(); }
    stop(PAUSE);
}
void* allocate(size_t bytes)
{
    size_t room = (bytes + 2 * GUARD) / GUARD * GUARD;
    char* p = pages(room);
    memory()[p] = bytes;
    ++changes;
    return p;
}
void release(void* p)
{
    auto found = memory().find(static_cast<char*>(p));
    if (found == memory().end()) return;
    munmap(p, (found->second + 2 * GUARD) / GUARD * GUARD);
    memory().erase(found);
    ++changes;
}
} // namespace pto::machine

using namespace pto::machine;
extern "C" __attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc()
{
    if (amounts && now) now->amount += amounts[(char*)__builtin_return_address(0) - base()];
}
#define DOOR extern "C" __attribute__((visibility("default")))
DOOR int64_t pto_cores = 0;
DOOR void pto_signals()
{
    static char other[SIGNAL_STACK];  // a frame of a signal alone has 11 KB where a processor has AMX
    stack_t s{other, 0, sizeof other};
    sigaltstack(&s, nullptr);
    void* first[1];
    backtrace(first, int(base() != nullptr));  // both prepare what a handler must not
    for (int n : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
        struct sigaction a {};
        a.sa_handler = crashed;
        a.sa_flags = SA_ONSTACK;
        sigaction(n, &a, nullptr);
    }
}
DOOR Agent* pto_agent(Call call, const void* closure, int64_t block, int64_t blocks, int64_t sub, int64_t subs, int64_t side)
{
    char* stack;
    try { stack = pages(STACK, MAP_NORESERVE); } catch (const std::bad_alloc&) { return nullptr; }
    Agent* a = new Agent();
    a->at = a->words = static_cast<int64_t*>(std::malloc(ROOM * 8));
    a->end = a->words + ROOM;
    if (amounts) a->before = a->beforeLast = static_cast<int64_t*>(std::malloc(ROOM * 8));
    a->block = block, a->blocks = blocks, a->sub = sub, a->subs = subs, a->side = side;
    Fiber* f = new Fiber();
    f->stack = stack;
    mprotect(f->stack, GUARD, PROT_NONE);
    f->call = call, f->closure = closure;
    getcontext(&f->own);
    f->own.uc_stack.ss_sp = f->stack;
    f->own.uc_stack.ss_size = STACK;
    f->own.uc_link = nullptr;
    makecontext(&f->own, body, 0);
    a->fiber = f;
    f->locals = localsNow();
    return a;
}
// Run an agent until it needs the machine; its records are [words, at).
DOOR int64_t pto_resume(Agent* a)
{
    Agent* before = now;
    a->at = a->words;
    a->beforeLast = a->before;
    now = a;
    Fiber* f = fiber(a);
    const size_t bytes = localBytes();
    std::vector<char> outer = bytes ? localsNow() : std::vector<char>();
    if (bytes) std::memcpy(__start_pto_block_local, f->locals.data(), bytes);
    if (!f->ended) swapcontext(&f->back, &f->own);
    if (bytes) f->locals = localsNow(), std::memcpy(__start_pto_block_local, outer.data(), bytes);
    now = before;
    return f->status;
}
DOOR void pto_end(Agent* a)
{
    munmap(fiber(a)->stack, STACK);
    delete fiber(a);
    std::free(a->words);
    std::free(a->before);
    delete a;
}
// A table that says what blocks of code do, for code of so many bytes; and what was done before each record.
DOOR int64_t* pto_count(int64_t bytes)
{
    if (!amounts) amounts = static_cast<int64_t*>(mmap(nullptr, size_t(bytes) * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return amounts;
}
DOOR int64_t pto_amounts(Agent* a, int64_t** out) { *out = a->before; return a->before ? a->beforeLast - a->before : 0; }
DOOR const char* pto_error(Agent* a) { return fiber(a)->error.c_str(); }
DOOR const TypeFacts* pto_type(int64_t n) { return &types()[size_t(n)]; }
DOOR const char* pto_enum(int64_t n) { return enums()[size_t(n)].c_str(); }
DOOR int64_t pto_path(int64_t n, int64_t* out)
{
    int64_t count = 0;
    for (void* p : paths()[size_t(n)]) out[count++] = (char*)p - base();
    return count;
}
DOOR Call pto_kernel(const char* key) { auto at = kernels().find(key); return at == kernels().end() ? nullptr : at->second.call; }
DOOR int64_t pto_side(const char* key) { auto at = kernels().find(key); return at == kernels().end() ? 0 : at->second.side; }
DOOR void* pto_allocate(int64_t bytes)
{
    try { return allocate(size_t(bytes)); } catch (const std::bad_alloc&) { return nullptr; }
}
DOOR void pto_release(void* p) { release(p); }
DOOR int64_t pto_changes() { return changes; }
DOOR int64_t pto_memory(int64_t* out, int64_t room)
{
    int64_t count = 0;
    for (auto& [p, n] : memory()) if (count < room) { out[2 * count] = int64_t(p); out[2 * count++ + 1] = int64_t(n); }
    return int64_t(memory().size());
}

// ---- ranks: hosts that take turns, and come together here
static int64_t arrived = 0, meetings = 0, asked = 0;
static std::vector<char> sent;
static char* windows[64] = {};
static void meet()
{
    finish();
    const int64_t turn = meetings;
    if (++arrived >= now->blocks) { arrived = 0, ++meetings; return; }
    while (meetings == turn) stop(FLUSH);
}
DOOR int64_t pto_asked_for_ranks() { return asked; }
DOOR int MPI_Init(int*, char***) { return 0; }
DOOR int MPI_Finalize() { return 0; }
DOOR int MPI_Comm_rank(int, int* rank) { *rank = int(now->block); return 0; }
DOOR int MPI_Comm_size(int, int* size) { asked = 1, *size = int(now->blocks); return 0; }
DOOR int MPI_Barrier(int) { meet(); return 0; }
DOOR int MPI_Bcast(void* data, int bytes, int, int root, int)
{
    if (now->block == root) sent.assign((char*)data, (char*)data + bytes);
    meet();
    std::memcpy(data, sent.data(), size_t(bytes));
    meet();
    return 0;
}
DOOR int MPI_Allgather(const void* data, int bytes, int, void* out, int, int, int)
{
    if (sent.size() < size_t(bytes * now->blocks)) sent.resize(size_t(bytes * now->blocks));
    std::memcpy(sent.data() + now->block * bytes, data, size_t(bytes));
    meet();
    std::memcpy(out, sent.data(), size_t(bytes * now->blocks));
    meet();
    return 0;
}
// A communicator is its number of ranks: the first of all of them, each with a window that all can reach.
DOOR int HcclGetRootInfo(HcclRootInfo*) { return 0; }
DOOR int HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo*, uint32_t, HcclComm* comm) { *comm = (void*)uintptr_t(ranks); return 0; }
DOOR int HcclGetCommName(HcclComm comm, char* name) { std::sprintf(name, "%d", int(uintptr_t(comm))); return 0; }
DOOR int HcclBarrier(HcclComm, void*) { meet(); return 0; }
DOOR int HcclCommDestroy(HcclComm) { return 0; }
DOOR int HcomGetCommHandleByGroup(const char* name, HcclComm* comm) { *comm = (void*)uintptr_t(std::atoi(name)); return 0; }
DOOR int HcomGetL0TopoTypeEx(const char*, uint32_t* topology, uint32_t) { *topology = 1; return 0; }
DOOR int HcclAllocComResourceByTiling(HcclComm comm, void*, void*, void** context)
{
    constexpr size_t WINDOW = size_t(200) << 20;
    struct Context { uint64_t work, bytes; uint32_t rank, ranks; uint64_t size, in[64], out[64], more[4]; };
    auto* c = (Context*)allocate(sizeof(Context));
    *c = {0, 0, uint32_t(now->block), uint32_t(uintptr_t(comm)), WINDOW};
    for (uint32_t n = 0; n < c->ranks; ++n) {
        if (!windows[n]) windows[n] = (char*)allocate(WINDOW);
        c->in[n] = c->out[n] = uint64_t(windows[n]);
    }
    *context = c;
    return 0;
}
DOOR int rtSetDevice(int32_t) { return 0; }
DOOR int rtStreamCreate(void** stream, int32_t) { *stream = (void*)1; return 0; }
DOOR int rtStreamDestroy(void*) { return 0; }

// ---- tests; a host without any is one itself
extern "C" int pto_host_main(int, char**) __asm__("main") __attribute__((weak, visibility("hidden")));
static void runMain()
{
    static char name[] = "host";
    char* words[] = {name, nullptr};
    if (pto_host_main(1, words)) ++testing::failures();
}
DOOR int64_t pto_tests()
{
    if (testing::all().empty() && pto_host_main) testing::all().push_back({"", "main", runMain});
    return int64_t(testing::all().size());
}
DOOR const char* pto_test(int64_t n) { static std::string s; auto& t = testing::all()[size_t(n)]; s = t.suite.empty() ? t.label : t.suite + "." + t.label; return s.c_str(); }
DOOR void pto_run_test(const void* number)
{
    auto& test = testing::all()[size_t(*static_cast<const int64_t*>(number))];
    if (!now->block) {  // the first rank to come
        testing::failures() = arrived = 0;
        testing::skipped() = false;
        missingFile.clear();
        for (char*& w : windows) release(w), w = nullptr;
    }
    testing::UnitTest::GetInstance()->now = &test;
    test.body();
}
DOOR const char* pto_missing() { return missingFile.c_str(); }
DOOR int64_t pto_failures() { return testing::skipped() ? -1 : testing::failures(); }
