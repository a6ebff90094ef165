// Logistic regression by stochastic gradient descent on two noisy clouds.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 10;
  std::mt19937 gen(3);
  std::normal_distribution<double> noise(0.0, 1.0);
  struct Point { double x, y; int label; };
  std::vector<Point> points;
  for (int i = 0; i < 2000; ++i) {
    const int label = i % 2;
    points.push_back({noise(gen) + 2.5 * label, noise(gen) - 2.5 * label, label});
  }
  std::filesystem::create_directories("out");
  std::ofstream csv("out/loss.csv");
  csv << "epoch,loss\n";
  double w0 = 0, w1 = 0, b = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double loss = 0;
    for (const auto& p : points) {
      const double z = 1 / (1 + std::exp(-(w0 * p.x + w1 * p.y + b)));
      loss -= p.label ? std::log(z + 1e-12) : std::log(1 - z + 1e-12);
      const double grad = z - p.label;
      w0 -= 0.01 * grad * p.x;
      w1 -= 0.01 * grad * p.y;
      b -= 0.01 * grad;
    }
    std::cout << "epoch " << epoch << " loss " << loss / points.size() << std::endl;
    csv << epoch << ',' << loss / points.size() << '\n';
  }
  std::ofstream("out/weights.txt") << w0 << ' ' << w1 << ' ' << b << '\n';
  return 0;
}
