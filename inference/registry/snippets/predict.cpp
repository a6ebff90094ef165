// What the model says of a picture, by ONNX Runtime's C++ API: the same numbers as `python run.py picture.png`.
//
//   c++ -std=c++17 -O2 -I$ORT/include predict.cpp -L$ORT/lib -lonnxruntime -Wl,-rpath,$ORT/lib -o predict
//   ./predict ../model/model.onnx picture.ppm
//
// $ORT is an unpacked release of https://github.com/microsoft/onnxruntime/releases, 1.17 or newer. It reads pictures as
// PPM (P6, 8 bits), upright: `python -c "from PIL import Image; Image.open('a.png').convert('RGB').save('a.ppm')"`, or
// hand `predict` the bytes of your own camera: RGB, row by row. It prints one line of JSON.
//
// With -DPREDICT_ALONE it needs no ONNX Runtime: `prepared` and `predictions` then stand before and after another engine.

#ifndef PREDICT_ALONE
#include <onnxruntime_cxx_api.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Class {
    long id;
    std::string name;
};

// --- the model
const std::string TASK = "classification";
const std::string INPUT = "images";
constexpr int WIDTH = 8, HEIGHT = 8, CHANNELS = 3;
const std::vector<float> MEAN = {0.0f, 0.0f, 0.0f};
const std::vector<float> STD = {255.0f, 255.0f, 255.0f};
constexpr bool BLUE_FIRST = false;
constexpr bool LETTERBOX = false;
const std::vector<std::pair<std::string, std::string>> OUTPUTS = {{"logits", "logits"}};  // role, name
const std::vector<Class> CLASSES = {{1, "red"}};
constexpr float SCORE_THRESHOLD = 0.3f;
constexpr float IOU_THRESHOLD = 0.5f;
constexpr std::size_t MAX_DETECTIONS = 300;
// --- the end of the model

constexpr std::uint8_t GREY = 114;                // beside a picture that keeps its shape
constexpr std::size_t MOST_CANDIDATES = 1000;     // of a class, before those that overlap are left out
constexpr int BITS = 22;                          // of the fixed-point weights of resampling

/// Pixels row by row, `channels` bytes each.
struct Picture {
    int width, height, channels;
    std::vector<std::uint8_t> data;
};

/// Where the picture is in the input: input = picture * scale + offset, in pixels.
struct Placement {
    int width, height;
    double scale_x, scale_y;
    int left, top;
};

/// One output of the first picture: numbers, and the sizes behind the first one.
struct Output {
    const float* data;
    std::vector<std::int64_t> sizes;
};

using Outputs = std::map<std::string, Output>;  // by role
using Row = std::vector<float>;
using Box = std::array<float, 4>;  // x1 y1 x2 y2

struct Found {
    std::size_t place, type;
    float score;
};

double round_even(double number) {
    const double below = std::floor(number), more = number - below;
    if (more == 0.5) return std::fmod(below, 2.0) != 0.0 ? below + 1 : below;
    return more < 0.5 ? below : below + 1;
}

// --- before the network

/// Resample lines of `size` pixels to `wanted`: each new pixel is the mean of those below a triangle around it.
/// `step` between pixels of a line, `jump` between lines, `new_jump` between lines of the result, in pixels.
std::vector<std::uint8_t> along(const std::vector<std::uint8_t>& data, int size, int lines, int wanted, int channels,
                                int step, int jump, int new_jump) {
    if (size == wanted) return data;
    std::vector<std::uint8_t> made(static_cast<std::size_t>(wanted) * lines * channels);
    const double scale = static_cast<double>(size) / wanted, spread = std::max(scale, 1.0);
    for (int at = 0; at < wanted; ++at) {
        const double centre = (at + 0.5) * scale;
        const int first = std::max(static_cast<int>(centre - spread + 0.5), 0);
        const int end = std::min(static_cast<int>(centre + spread + 0.5), size);
        std::vector<double> weights;
        for (int one = first; one < end; ++one)
            weights.push_back(std::max(1 - std::abs((one - centre + 0.5) * (1 / spread)), 0.0));
        const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
        std::vector<std::int64_t> fixed;
        for (const double weight : weights) fixed.push_back(static_cast<std::int64_t>(0.5 + weight / whole * (1 << BITS)));
        for (int line = 0; line < lines; ++line)
            for (int channel = 0; channel < channels; ++channel) {
                std::int64_t sum = 1 << (BITS - 1);
                for (std::size_t place = 0; place < fixed.size(); ++place) {
                    const std::size_t pixel = static_cast<std::size_t>(first + place) * step + static_cast<std::size_t>(line) * jump;
                    sum += data[pixel * channels + channel] * fixed[place];
                }
                const std::size_t pixel = static_cast<std::size_t>(at) * step + static_cast<std::size_t>(line) * new_jump;
                made[pixel * channels + channel] = static_cast<std::uint8_t>(std::min<std::int64_t>(255, sum >> BITS));
            }
    }
    return made;
}

Picture resized(const Picture& own, int width, int height) {
    auto across = along(own.data, own.width, own.height, width, own.channels, 1, own.width, width);
    return {width, height, own.channels, along(across, own.height, width, height, own.channels, width, 1, 1)};
}

/// RGB as the network wants it: as it is, or the brightness by ITU-R BT.601.
Picture coloured(const Picture& rgb) {
    if (CHANNELS == 3) return rgb;
    Picture grey{rgb.width, rgb.height, 1, {}};
    for (std::size_t at = 0; at < rgb.data.size(); at += 3)
        grey.data.push_back(
            static_cast<std::uint8_t>((rgb.data[at] * 19595 + rgb.data[at + 1] * 38470 + rgb.data[at + 2] * 7471 + 0x8000) >> 16));
    return grey;
}

/// The input [CHANNELS, HEIGHT, WIDTH] of an RGB picture, and where the picture is in it.
std::pair<std::vector<float>, Placement> prepared(const Picture& rgb) {
    const Picture own = coloured(rgb);
    Placement place{own.width, own.height, static_cast<double>(WIDTH) / own.width,
                    static_cast<double>(HEIGHT) / own.height, 0, 0};
    Picture placed{WIDTH, HEIGHT, CHANNELS, {}};
    if (LETTERBOX) {
        const double scale = std::min(place.scale_x, place.scale_y);
        const int wide = std::min(WIDTH, std::max(1, static_cast<int>(round_even(own.width * scale))));
        const int high = std::min(HEIGHT, std::max(1, static_cast<int>(round_even(own.height * scale))));
        place = {own.width, own.height, static_cast<double>(wide) / own.width, static_cast<double>(high) / own.height,
                 (WIDTH - wide) / 2, (HEIGHT - high) / 2};
        placed.data.assign(static_cast<std::size_t>(WIDTH) * HEIGHT * CHANNELS, GREY);
        const Picture small = resized(own, wide, high);
        for (int row = 0; row < high; ++row)
            std::copy_n(small.data.begin() + static_cast<std::ptrdiff_t>(row) * wide * CHANNELS, wide * CHANNELS,
                        placed.data.begin() + (static_cast<std::ptrdiff_t>(row + place.top) * WIDTH + place.left) * CHANNELS);
    } else {
        placed = resized(own, WIDTH, HEIGHT);
    }
    const std::size_t count = static_cast<std::size_t>(WIDTH) * HEIGHT;
    std::vector<float> values(count * CHANNELS);
    for (int channel = 0; channel < CHANNELS; ++channel) {
        const int from = BLUE_FIRST ? CHANNELS - 1 - channel : channel;  // of red, green, blue, as MEAN and STD are
        for (std::size_t at = 0; at < count; ++at)
            values[channel * count + at] = (static_cast<float>(placed.data[at * CHANNELS + from]) - MEAN[from]) / STD[from];
    }
    return {values, place};
}

// --- after the network

/// Places of numbers, the highest first, equal ones in their order.
std::vector<std::size_t> order(const std::vector<float>& numbers) {
    std::vector<std::size_t> places(numbers.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](auto one, auto other) { return numbers[one] > numbers[other]; });
    return places;
}

Row softmax(Row scores) {
    const float highest = *std::max_element(scores.begin(), scores.end());
    for (float& score : scores) score = std::exp(score - highest);
    const float whole = std::accumulate(scores.begin(), scores.end(), 0.0f);
    for (float& score : scores) score /= whole;
    return scores;
}

std::vector<Row> rows_of(const Output& output) {
    const auto count = static_cast<std::size_t>(output.sizes.at(0)), columns = static_cast<std::size_t>(output.sizes.at(1));
    std::vector<Row> rows;
    for (std::size_t row = 0; row < count; ++row) rows.emplace_back(output.data + row * columns, output.data + (row + 1) * columns);
    return rows;
}

Box corners(float x, float y, float wide, float high) { return {x - wide / 2, y - high / 2, x + wide / 2, y + high / 2}; }

/// Boxes in pixels of the input, and a score for each class, however the network lays them out.
std::pair<std::vector<Box>, std::vector<Row>> boxes_and_scores(const Outputs& outputs) {
    std::vector<Box> boxes;
    std::vector<Row> scores;
    if (outputs.count("boxes")) {
        for (const Row& row : rows_of(outputs.at("boxes"))) boxes.push_back({row[0], row[1], row[2], row[3]});
        scores = rows_of(outputs.at("scores"));
    } else if (outputs.count("yolo")) {
        const auto columns = rows_of(outputs.at("yolo"));
        for (std::size_t place = 0; place < columns[0].size(); ++place) {
            boxes.push_back(corners(columns[0][place], columns[1][place], columns[2][place], columns[3][place]));
            Row row;
            for (std::size_t type = 4; type < columns.size(); ++type) row.push_back(columns[type][place]);
            scores.push_back(row);
        }
    } else if (outputs.count("yolov5")) {
        for (const Row& row : rows_of(outputs.at("yolov5"))) {
            boxes.push_back(corners(row[0], row[1], row[2], row[3]));
            Row likely;
            for (std::size_t type = 5; type < row.size(); ++type) likely.push_back(row[type] * row[4]);
            scores.push_back(likely);
        }
    } else if (outputs.count("end2end")) {
        for (const Row& row : rows_of(outputs.at("end2end"))) {
            boxes.push_back({row[0], row[1], row[2], row[3]});
            Row likely(CLASSES.size(), 0.0f);
            if (row[5] >= 0 && row[5] < static_cast<float>(CLASSES.size())) likely[static_cast<std::size_t>(row[5])] = row[4];
            scores.push_back(likely);
        }
    } else {
        for (const Row& row : rows_of(outputs.at("detr_boxes")))
            boxes.push_back(corners(row[0] * WIDTH, row[1] * HEIGHT, row[2] * WIDTH, row[3] * HEIGHT));
        const bool single = outputs.count("detr_logits") > 0;
        for (Row row : rows_of(outputs.at(single ? "detr_logits" : "detr_sigmoid_logits"))) {
            if (single) {
                row = softmax(row);
                row.pop_back();  // "no object"
            } else {
                for (float& one : row) one = 1 / (1 + std::exp(-one));
            }
            scores.push_back(row);
        }
    }
    return {boxes, scores};
}

float overlap(const Box& one, const Box& other) {
    const auto size = [](const Box& box) { return std::max(box[2] - box[0], 0.0f) * std::max(box[3] - box[1], 0.0f); };
    const float wide = std::max(std::min(one[2], other[2]) - std::max(one[0], other[0]), 0.0f);
    const float high = std::max(std::min(one[3], other[3]) - std::max(one[1], other[1]), 0.0f);
    return wide * high / std::max(size(one) + size(other) - wide * high, 1e-9f);
}

/// What was found, best first; of boxes of a class that overlap too much the best stays.
std::vector<Found> apart(const std::vector<Box>& boxes, const std::vector<Row>& scores) {
    std::vector<Found> found;
    const std::size_t types = scores.empty() ? 0 : scores[0].size();
    for (std::size_t type = 0; type < types; ++type) {
        std::vector<std::size_t> places, kept;
        Row likely;
        for (std::size_t place = 0; place < boxes.size(); ++place) {
            const bool finite = std::all_of(boxes[place].begin(), boxes[place].end(), [](float edge) { return std::isfinite(edge); });
            if (finite && scores[place][type] >= SCORE_THRESHOLD) {
                places.push_back(place);
                likely.push_back(scores[place][type]);
            }
        }
        std::size_t seen = 0;
        for (const std::size_t at : order(likely)) {
            if (seen++ == MOST_CANDIDATES || kept.size() == MAX_DETECTIONS) break;
            const std::size_t place = places[at];
            if (std::all_of(kept.begin(), kept.end(),
                            [&](std::size_t other) { return overlap(boxes[other], boxes[place]) <= IOU_THRESHOLD; }))
                kept.push_back(place);
        }
        for (const std::size_t place : kept) found.push_back({place, type, scores[place][type]});
    }
    Row likely;
    for (const Found& one : found) likely.push_back(one.score);
    std::vector<Found> best;
    for (const std::size_t at : order(likely)) {
        if (best.size() == MAX_DETECTIONS) break;
        best.push_back(found[at]);
    }
    return best;
}

// --- as JSON

std::string quoted(const std::string& text) {
    std::ostringstream out;
    out << '"';
    for (const char sign : text) {
        if (sign == '"' || sign == '\\') out << '\\' << sign;
        else if (static_cast<unsigned char>(sign) < 32) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(sign));
            out << code;
        } else out << sign;
    }
    out << '"';
    return out.str();
}

std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, round_even(value * std::pow(10, digits)) / std::pow(10, digits));
    return text;
}

std::string class_at(std::size_t place) {
    const bool known = place < CLASSES.size();
    return "\"class_id\": " + std::to_string(known ? CLASSES[place].id : static_cast<long>(place)) +
           ", \"name\": " + quoted(known ? CLASSES[place].name : std::to_string(place));
}

/// What the network says of one picture, as the predictions of a service.
std::vector<std::string> predictions(const Outputs& outputs, const Placement& place) {
    std::vector<std::string> said;
    if (TASK == "detection") {
        const auto [boxes, scores] = boxes_and_scores(outputs);
        for (const Found& one : apart(boxes, scores)) {
            const Box& box = boxes[one.place];
            const auto moved = [](float v, int offset, double scale, int size) {
                return std::clamp((v - static_cast<float>(offset)) / static_cast<float>(scale), 0.0f, static_cast<float>(size));
            };
            const auto x = [&](float v) { return moved(v, place.left, place.scale_x, place.width); };
            const auto y = [&](float v) { return moved(v, place.top, place.scale_y, place.height); };
            said.push_back("{" + class_at(one.type) + ", \"score\": " + number(one.score, 6) + ", \"box\": [" + number(x(box[0]), 2) +
                           ", " + number(y(box[1]), 2) + ", " + number(x(box[2]), 2) + ", " + number(y(box[3]), 2) + "]}");
        }
        return said;
    }
    const bool likely = outputs.count("probabilities") > 0;
    const Output& output = outputs.at(likely ? "probabilities" : "logits");
    Row scores(output.data, output.data + output.sizes.at(0));
    if (TASK == "classification" && !likely) scores = softmax(scores);
    if (TASK == "tagging" && !likely)
        for (float& score : scores) score = 0.5f * (1 + std::tanh(score / 2));
    for (const std::size_t at : order(scores)) {
        std::string more;
        if (TASK == "tagging")
            more = std::string(", \"present\": ") + (scores[at] >= SCORE_THRESHOLD ? "true" : "false") + ", \"threshold\": " + number(SCORE_THRESHOLD, 6);
        said.push_back("{" + class_at(at) + ", \"score\": " + number(scores[at], 6) + more + "}");
    }
    return said;
}

// --- the program

Picture read_ppm(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string kind;
    int width = 0, height = 0, most = 0;
    if (!(file >> kind >> width >> height >> most) || kind != "P6" || most != 255 || width < 1 || height < 1)
        throw std::runtime_error(path + " is no PPM of 8 bits (P6)");
    file.get();
    Picture picture{width, height, 3, std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height * 3)};
    if (!file.read(reinterpret_cast<char*>(picture.data.data()), static_cast<std::streamsize>(picture.data.size())))
        throw std::runtime_error(path + " is cut short");
    return picture;
}

/// One line of JSON: task, size of the picture, predictions.
std::string line_of(const Outputs& outputs, const Placement& place) {
    std::string line;
    for (const std::string& one : predictions(outputs, place)) line += (line.empty() ? "" : ", ") + one;
    return "{\"task\": " + quoted(TASK) + ", \"image\": {\"width\": " + std::to_string(place.width) +
           ", \"height\": " + std::to_string(place.height) + "}, \"predictions\": [" + line + "]}";
}

#ifndef PREDICT_ALONE
std::string predict(Ort::Session& session, const Picture& rgb) {
    auto [values, place] = prepared(rgb);
    const std::array<std::int64_t, 4> shape{1, CHANNELS, HEIGHT, WIDTH};
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    auto input = Ort::Value::CreateTensor<float>(memory, values.data(), values.size(), shape.data(), shape.size());
    const char* input_name = INPUT.c_str();
    std::vector<const char*> names;
    for (const auto& output : OUTPUTS) names.push_back(output.second.c_str());
    const auto answered = session.Run(Ort::RunOptions{nullptr}, &input_name, &input, 1, names.data(), names.size());
    Outputs outputs;
    for (std::size_t at = 0; at < names.size(); ++at) {
        auto sizes = answered[at].GetTensorTypeAndShapeInfo().GetShape();
        sizes.erase(sizes.begin());
        outputs[OUTPUTS[at].first] = {answered[at].GetTensorData<float>(), sizes};
    }
    return line_of(outputs, place);
}

int main(int count, char** words) {
    if (count < 3) {
        std::cerr << "predict model.onnx picture.ppm ...\n";
        return 2;
    }
    try {
        Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "predict");
        Ort::SessionOptions options;
        options.SetIntraOpNumThreads(1);
        Ort::Session session(env, words[1], options);
        for (int at = 2; at < count; ++at) std::cout << predict(session, read_ppm(words[at])) << "\n";
    } catch (const std::exception& wrong) {
        std::cerr << wrong.what() << "\n";
        return 1;
    }
    return 0;
}
#endif
