package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Kill is the end of a run at one of its writes.
type Kill struct {
	// Write is named as in [Request].
	Write  string
	Moment Moment
}

// String implements fmt.Stringer.
func (k Kill) String() string { return string(k.Moment) + " " + k.Write }

// Kills returns the kills of a run with these writes that make a difference to the cluster:
// before the first write, and after each of them. A kill before a later write leaves what a
// kill after the previous one leaves. Writes of the same kind that are not updates are in
// progress at the same time: a run is killed before the last of them, when some have an
// effect and others none, and after it, when all have. Writes are identified by name, since
// their order varies.
func Kills(writes []string) []Kill {
	number := map[string]int{}
	for _, write := range writes {
		number[kindOf(write)]++
	}
	var all []Kill
	for i, write := range writes {
		kind := kindOf(write)
		concurrent := number[kind] > 1 && !isUpdate(kind)
		last := write == fmt.Sprintf("%s %d", kind, number[kind])
		if i == 0 || concurrent && last {
			all = append(all, Kill{Write: write, Moment: Before})
		}
		if !concurrent || last {
			all = append(all, Kill{Write: write, Moment: After})
		}
	}
	return all
}

// Comparable returns the writes in a form that is the same for all runs of the same checks:
// sorted, updates once and without their number, which depends on how long a run takes, and
// without the deletion of pods, which the garbage collector may delete first.
func Comparable(writes []string) []string {
	var all []string
	for _, write := range writes {
		switch kind := kindOf(write); {
		case IsOfPod(write):
		case isUpdate(kind):
			all = append(all, kind)
		default:
			all = append(all, write)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// IsOfPod reports whether a write is the deletion of a pod, which a run may lack.
func IsOfPod(write string) bool { return kindOf(write) == "DELETE pods" }

func isUpdate(kind string) bool { return strings.HasPrefix(kind, "PUT ") }

// kindOf returns the name of a write without its number.
func kindOf(write string) string { return write[:strings.LastIndex(write, " ")] }
