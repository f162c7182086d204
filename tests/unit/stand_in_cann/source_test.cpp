// What the stand-in bisheng reads from a source, and changes in it.
#include "stand_in/cann/tools/source.hpp"

#include "unit/support.hpp"

namespace {

using dj_stand_in::vf_flag_of;
using dj_stand_in::with_dynamic_ub;

TEST(StandInSource, DynamicBufferBecomesAPointer) {
    const std::string source =
        "void k() {\n    extern __ubuf__ float one[];\n"
        "    extern  __ubuf__\n unsigned long two[ ] ; use(one, two);\n}\n";
    const auto changed = with_dynamic_ub(source);
    EXPECT_CONTAINS(changed, "__ubuf__ float * one = reinterpret_cast< __ubuf__ float *>(");
    EXPECT_CONTAINS(changed, "* two = reinterpret_cast<");
    EXPECT_EQ(changed.find("extern"), std::string::npos);
    EXPECT_CONTAINS(changed, "use(one, two);\n}\n");
}

TEST(StandInSource, EverythingElseStays) {
    for (const std::string source :
         {"extern \"C\" __global__ void k(__ubuf__ float* p) { int a[3]; }\n",
          "// extern __ubuf__ float a[];\n/* extern __ubuf__ float b[]; */\n",
          "const char* text = \"extern __ubuf__ float a[];\";\n", "extern float a[];\n",
          "extern __ubuf__ float a[4];\n", "int n = 1'000; // it's\n", "extern", "\"", "/*", ""})
        EXPECT_EQ(with_dynamic_ub(source), source);
}

TEST(StandInSource, VectorFunctions) {
    EXPECT_EQ(vf_flag_of("void f();"), 1);
    EXPECT_EQ(vf_flag_of("__simd_vf__ void f();"), 2);
    EXPECT_EQ(vf_flag_of("__simt_vf__ void f(); // __simd_vf__"), 3);
    EXPECT_EQ(vf_flag_of("__simt_vf__ void f(); __simd_vf__ void g();"), 4);
    EXPECT_EQ(vf_flag_of("int my__simt_vf__;"), 1);
}

}  // namespace
