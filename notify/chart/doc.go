// Package chart draws the panels of a report as one PNG: three or four small charts on one time axis, with the baseline
// shaded and onset and alert marked. It is pure Go, needs no fonts of the machine, and its background is its own, so it
// reads the same in light and dark chats.
package chart
