// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

namespace prometheus {
struct MetricFamily;
}

namespace tensord::obs {

// Prometheus' text format 0.0.4 as TensorFlow Serving prints it: labels in the order of the table,
// bucket bounds with six digits (they are label values: two spellings of one bound would be two
// buckets), empty braces where there are no labels. Pure.
std::string MetricText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace tensord::obs
