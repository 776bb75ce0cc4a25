// Package command is rentop for scripts and habits: one file a command, each a
// few lines over session. Text and JSON are made from the same values.
//
// What scripts may rely on: results on standard output, everything else on
// standard error; exit codes 0 done, 1 failed, 2 wrong usage, 3 refused for
// safety; without a terminal nothing asks. testdata/script holds it.
package command
