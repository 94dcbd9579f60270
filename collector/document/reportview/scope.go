package reportview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/report"
)

const everyTarget = "every target"

// scope lists the targets that a finding is about, by minor version where it is about all targets of one.
func scope(about []string, all []report.Candidate) string {
	concerned := map[string]bool{}
	for _, version := range about {
		concerned[version] = true
	}
	var streams []string
	in, out := map[string][]string{}, map[string]int{}
	for _, target := range all {
		stream := streamOf(target.Version)
		if in[stream] == nil && out[stream] == 0 {
			streams = append(streams, stream)
		}
		if concerned[target.Version] {
			in[stream] = append(in[stream], target.Version)
		} else {
			out[stream]++
		}
	}
	return wordScope(streams, in, out)
}

func wordScope(streams []string, in map[string][]string, out map[string]int) string {
	var yes, no []string
	partly := false
	for _, stream := range streams {
		switch {
		case len(in[stream]) == 0:
			no = append(no, stream)
		case out[stream] == 0 && len(in[stream]) > 1:
			yes = append(yes, stream)
		default:
			partly = partly || out[stream] > 0
			yes = append(yes, some(in[stream])...)
		}
	}
	switch {
	case len(no) == 0 && !partly:
		return everyTarget
	case len(no) == 0:
		return strings.Join(yes, ", ")
	}
	return fmt.Sprintf("%s; not %s", strings.Join(yes, ", "), strings.Join(no, ", "))
}

func some(versions []string) []string {
	const most = 6
	if len(versions) <= most {
		return versions
	}
	return append(slices.Clone(versions[:most-1]), fmt.Sprintf("and %d more of %s", len(versions)-most+1, streamOf(versions[0])))
}

// streamOf is the minor version, as in 4.19.z; text that is no version is kept.
func streamOf(version string) string {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return version
	}
	return major + "." + minor + ".z"
}
