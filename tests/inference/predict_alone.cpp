// predict.cpp beside another engine: `alone prepare a.ppm` writes the input, `alone read a.ppm ROLE SIZES FILE …` reads outputs.
#define PREDICT_ALONE
#include "predict.cpp"

int main(int count, char** words) {
    const auto [values, place] = prepared(read_ppm(words[2]));
    if (std::string(words[1]) == "prepare") {
        std::cout.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
        return 0;
    }
    Outputs outputs;
    std::map<std::string, std::vector<float>> kept;
    for (int at = 3; at + 2 < count; at += 3) {
        std::vector<std::int64_t> sizes;
        std::stringstream given(words[at + 1]);
        for (std::string one; std::getline(given, one, ',');) sizes.push_back(std::stoll(one));
        std::ifstream file(words[at + 2], std::ios::binary);
        auto& numbers = kept[words[at]];
        for (float one; file.read(reinterpret_cast<char*>(&one), sizeof one);) numbers.push_back(one);
        outputs[words[at]] = {numbers.data(), sizes};
    }
    std::cout << line_of(outputs, place) << "\n";
    return 0;
}
