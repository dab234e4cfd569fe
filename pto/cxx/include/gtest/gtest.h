// The part of googletest that system tests of kernels use; tests are run one by one from outside.
#pragma once
#define PTO_MACHINE 1 // host programs leave out what only a board can do, as measuring time
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace testing {
struct TestInfo {
    std::string suite, label;
    void (*body)();
    const char* name() const { return label.c_str(); }
    const char* test_suite_name() const { return suite.c_str(); }
    const char* test_case_name() const { return suite.c_str(); }
};
inline std::vector<TestInfo>& all() { static std::vector<TestInfo> tests; return tests; }
inline int& failures() { static int count = 0; return count; }
inline bool& skipped() { static bool is = false; return is; }
struct UnitTest {
    const TestInfo* now = nullptr;
    static UnitTest* GetInstance() { static UnitTest only; return &only; }
    const TestInfo* current_test_info() const { return now; }
};
struct Test {
    virtual ~Test() = default;
    virtual void SetUp() {}
    virtual void TearDown() {}
    virtual void TestBody() = 0;
    static void SetUpTestSuite() {}
    static void TearDownTestSuite() {}
    static bool HasFailure() { return failures() > 0; }
};
struct Add { Add(const char* suite, const char* name, void (*body)()) { all().push_back({suite, name, body}); } };
struct Message {
    template <class T> Message& operator<<(const T& x) { text << x; return *this; }
    Message& operator<<(std::ostream& (*)(std::ostream&)) { return *this; }
    std::ostringstream text;
};
struct Fail {  // `Fail() = Message() << ...` so that a failed check may return from its test
    bool skip = false;
    void operator=(const Message& m) const
    {
        (skip ? int(skipped() = true) : ++failures());
        if (!m.text.str().empty()) std::cerr << m.text.str() << "\n";
    }
};
template <class T> std::string PrintToString(const T& all)
{
    std::ostringstream text;
    for (auto& x : all) text << x << " ";
    return text.str();
}
inline void InitGoogleTest(int*, char**) {}
inline void InitGoogleTest() {}
} // namespace testing

#define PTO_TEST_(S, N, BASE) \
    struct S##_##N##_Test : BASE { \
        void TestBody() override; \
        static void Go() { S##_##N##_Test t; t.SetUp(); t.TestBody(); t.TearDown(); } \
    }; \
    static ::testing::Add S##_##N##_add(#S, #N, &S##_##N##_Test::Go); \
    void S##_##N##_Test::TestBody()
#define TEST_F(S, N) PTO_TEST_(S, N, S)
#define TEST(S, N) PTO_TEST_(S, N, ::testing::Test)
#define PTO_EXPECT_(ok) if (ok) ; else ::testing::Fail() = ::testing::Message()
#define PTO_ASSERT_(ok) if (ok) ; else return ::testing::Fail() = ::testing::Message()
#define EXPECT_TRUE(c) PTO_EXPECT_(bool(c))
#define EXPECT_FALSE(c) PTO_EXPECT_(!(c))
#define EXPECT_EQ(a, b) PTO_EXPECT_((a) == (b))
#define EXPECT_NE(a, b) PTO_EXPECT_((a) != (b))
#define EXPECT_LT(a, b) PTO_EXPECT_((a) < (b))
#define EXPECT_LE(a, b) PTO_EXPECT_((a) <= (b))
#define EXPECT_GT(a, b) PTO_EXPECT_((a) > (b))
#define EXPECT_GE(a, b) PTO_EXPECT_((a) >= (b))
#define EXPECT_NEAR(a, b, d) PTO_EXPECT_(std::abs(double(a) - double(b)) <= double(d))
#define EXPECT_FLOAT_EQ(a, b) PTO_EXPECT_(float(a) == float(b) || std::abs(float(a) - float(b)) <= 4e-7f * std::abs(float(b)))
#define ASSERT_TRUE(c) PTO_ASSERT_(bool(c))
#define ASSERT_FALSE(c) PTO_ASSERT_(!(c))
#define ASSERT_EQ(a, b) PTO_ASSERT_((a) == (b))
#define ASSERT_NE(a, b) PTO_ASSERT_((a) != (b))
#define ASSERT_LT(a, b) PTO_ASSERT_((a) < (b))
#define ASSERT_LE(a, b) PTO_ASSERT_((a) <= (b))
#define ASSERT_GT(a, b) PTO_ASSERT_((a) > (b))
#define ASSERT_GE(a, b) PTO_ASSERT_((a) >= (b))
#define ADD_FAILURE() ::testing::Fail() = ::testing::Message()
#define FAIL() return ::testing::Fail() = ::testing::Message()
#define GTEST_SKIP() return ::testing::Fail{true} = ::testing::Message()
#define SUCCEED() ::testing::Message()
#define SCOPED_TRACE(m) ((void)0)
#define RUN_ALL_TESTS() 0
