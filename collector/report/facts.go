package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
)

func signature(target Target) string {
	if !target.Verified {
		return "NOT VERIFIED"
	}
	return "verified, signed by " + strings.Join(target.Signers, "; ")
}

// behavior is what CVO would do with the same request.
func behavior(cvo CVO) string {
	text := "unknown whether CVO would accept this update"
	if cvo.Accepts != nil && *cvo.Accepts {
		text = "would accept this update"
	} else if cvo.Accepts != nil {
		text = "would refuse this update"
	}
	if cvo.Reason != "" {
		text += " (" + cvo.Reason + ")"
	}
	if cvo.Message != "" {
		text += ": " + cvo.Message
	}
	return text
}

// kinds counts objects by kind, in the order of their names.
func kinds(objects []finding.Object) string {
	counts := map[string]int{}
	for _, object := range objects {
		counts[object.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// limited are the first most names, and how many more there are.
func limited(names []string, most int) []string {
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
}
