// Runs a compiled model from C++, without Python, and prints the largest values of its outputs.
//
//     mxc compile net-symbol.json --shape data=1,3,224,224 -o net.mxc
//     c++ -std=c++11 -O2 -pthread -I"$(mxc --include)" run_artifact.cpp -o run_artifact
//     ./run_artifact net.mxc data=image.npy
//
// image.npy is what numpy.save makes of an array of the input's shape and dtype. An input that is not given is 0.

#define MXC_IMPLEMENTATION
#include "mxc.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kLargest = 5;  // values that are printed of an output

struct Free {
    void operator()(mxc_model *model) const { mxc_free(model); }
    void operator()(mxc_session *session) const { mxc_close(session); }
};

std::string shape_of(const mxc_array &array, const char *between, const char *behind_one) {
    std::string text;
    for (int i = 0; i < array.ndim; i++) text += (i ? between : "") + std::to_string(array.shape[i]);
    return array.ndim == 1 ? text + behind_one : text;
}

// The elements of an array in NumPy's format, which must be of the input's dtype and shape.
std::string read_npy(const std::string &path, const mxc_array &input) {
    static const struct { const char *dtype, *code; } kCodes[] = {
        {"float32", "<f4"}, {"float64", "<f8"}, {"float16", "<f2"}, {"uint8", "|u1"},
        {"int8", "|i1"},    {"int32", "<i4"},   {"int64", "<i8"},   {"bool", "|b1"}};
    std::ifstream file(path, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) throw std::runtime_error(path + ": it cannot be read");
    if (content.size() < 12 || content.compare(0, 6, "\x93NUMPY") != 0) throw std::runtime_error(path + ": no .npy file");
    const bool is_first = content[6] == 1;  // its header's length has two bytes, later ones' have four
    std::size_t length = 0;
    for (int i = is_first ? 1 : 3; i >= 0; i--) length = length * 256 + static_cast<unsigned char>(content[8 + i]);
    const std::size_t start = (is_first ? 10 : 12) + length;
    const std::string head = content.substr(0, std::min(start, content.size()));
    std::string code;
    for (const auto &each : kCodes)
        if (std::strcmp(each.dtype, input.dtype) == 0) code = each.code;
    const std::string shape = "(" + shape_of(input, ", ", ",") + ")";
    if (head.find("'descr': '" + code + "'") == std::string::npos ||
        head.find("'fortran_order': False") == std::string::npos ||
        head.find("'shape': " + shape) == std::string::npos || content.size() - start != input.nbytes)
        throw std::runtime_error(path + ": expected " + input.dtype + " " + shape + ", in C order");
    return content.substr(start);
}

void fill(const mxc_model *model, mxc_session *session, const std::string &word) {
    const std::size_t equals = word.find('=');
    for (int i = 0; i < mxc_num_inputs(model); i++) {
        const mxc_array *input = mxc_input(model, 0, i);
        if (equals != std::string::npos && word.substr(0, equals) == input->name) {
            const std::string values = read_npy(word.substr(equals + 1), *input);
            std::memcpy(mxc_input_data(session, i), values.data(), values.size());
            return;
        }
    }
    throw std::runtime_error(word + ": expected INPUT=FILE.npy; the inputs are those that `mxc inspect` lists");
}

void print(const mxc_array &output, const void *data) {
    std::printf("%s %s %s\n", output.name, output.dtype, shape_of(output, "x", "").c_str());
    if (std::strcmp(output.dtype, "float32") != 0) return;
    const float *values = static_cast<const float *>(data);
    std::vector<std::size_t> order(output.nbytes / sizeof(float));
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t count = std::min(kLargest, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [values](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    for (std::size_t i = 0; i < count; i++) std::printf("%10zu  %g\n", order[i], static_cast<double>(values[order[i]]));
}

void run(const std::vector<std::string> &words) {
    mxc_error error;
    std::unique_ptr<mxc_model, Free> model(mxc_load(words.at(0).c_str(), &error));
    if (!model) throw std::runtime_error(error.message);
    std::unique_ptr<mxc_session, Free> session(mxc_open(model.get(), 0, 1, &error));
    if (!session) throw std::runtime_error(error.message);
    for (std::size_t i = 1; i < words.size(); i++) fill(model.get(), session.get(), words[i]);
    if (mxc_run(session.get(), &error) != MXC_OK) throw std::runtime_error(error.message);
    for (int i = 0; i < mxc_num_outputs(model.get()); i++)
        print(*mxc_output(model.get(), 0, i), mxc_output_data(session.get(), i));
}

}  // namespace

int main(int count, char **words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s NAME.mxc [INPUT=FILE.npy ...]\n", words[0]);
        return 2;
    }
    try {
        run(std::vector<std::string>(words + 1, words + count));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
