// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "bench/machine.h"
#include "bench/series.h"

// What a series found, for people and for programs. Pure.
namespace tensord::bench {

// Text that stands over and beside the figures.
struct ReportFacts {
  std::string server = {};   // "127.0.0.1:8500"
  std::string version = {};  // Of this program.
  std::string command = {};  // What was asked for.
  Machine machine = {};
};

std::string TextReport(const ReportFacts& facts, const Series& series);
// One JSON object, every number with its unit in its name. A single measurement is the object
// itself; a series has "points".
std::string JsonReport(const ReportFacts& facts, const Series& series);

// "1.24 ms": three digits and a unit.
std::string ShortTime(int64_t nanoseconds);
// One line of progress: what happens now.
std::string ProgressLine(const std::string& title, const Progress& progress);

}  // namespace tensord::bench
