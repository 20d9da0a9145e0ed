// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::obs {

// The page docs/metrics.md, made from metric_table.h.
std::string MetricDocs();

}  // namespace tensord::obs
