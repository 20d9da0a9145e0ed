# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""How ./run bench measures: pairs, intervals, the state of the machine, charts, tables."""
