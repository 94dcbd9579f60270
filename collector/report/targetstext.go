package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// writeTargetsText renders the targets for people: a table of all, then every
// finding once, with the targets that it is about.
func writeTargetsText(w io.Writer, targets Targets) error {
	var page bytes.Buffer
	if len(targets.Targets) == 1 {
		writeCandidate(&page, targets)
	} else {
		writeTable(&page, targets)
		writeShared(&page, targets)
	}
	_, err := w.Write(page.Bytes())
	return err
}

// writeCandidate tells of one target all there is.
func writeCandidate(w io.Writer, targets Targets) {
	target := targets.Targets[0]
	told := Report{Target: Target{Version: target.Version}, Verdict: target.Verdict}
	for _, f := range targets.Findings {
		told.Findings = append(told.Findings, f.Finding)
	}
	fmt.Fprintf(w, "%s\n\n", headline(told))
	row(w, "Target", target.Version)
	row(w, "Image", target.Image)
	row(w, "Update", strings.TrimPrefix(target.UpdateKind+", from ", ", ")+targets.Cluster.Version)
	row(w, "Listed as", listing(target))
	row(w, "CVO", behavior(target.CVO))
	row(w, "Checks", fmt.Sprintf("%d of %d reported; the signature and the checks of the release were not looked at", target.Expected.Reported, target.Expected.Checks))
	row(w, "Findings", tally(told.Findings))
	fmt.Fprintln(w)
	writeBody(w, told)
}

func listing(target Candidate) string {
	lists := "available update"
	if target.Conditional {
		lists = "conditional update"
	}
	return lists + ", Recommended=" + target.Recommended
}

// writeTable has one row for each target. What stands in the way of all of them
// is said once, below the table.
func writeTable(w io.Writer, targets Targets) {
	counts := map[verdict.Decision]int{}
	common := commonCauses(targets.Targets)
	var rows bytes.Buffer
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tKIND\tRECOMMENDED\tDECISION\tCAUSES")
	for _, target := range targets.Targets {
		counts[target.Verdict.Decision]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cell(target.Version), cell(target.UpdateKind), cell(target.Recommended),
			cell(string(target.Verdict.Decision)), cell(describeCauses(target, common)))
	}
	_ = table.Flush() // to a buffer
	fmt.Fprintf(w, "%d updates of this cluster from %s in channel %s: %d Ready, %d Blocked, %d Undecided.\n"+
		"The signatures and the checks of the releases were not looked at: oc preflight run --to VERSION\n\n",
		len(targets.Targets), words.Printable(targets.Cluster.Version), words.Printable(targets.Channel),
		counts[verdict.Ready], counts[verdict.Blocked], counts[verdict.Undecided])
	if len(targets.Targets) > 0 {
		fmt.Fprintf(w, "%s\n", rows.Bytes())
	}
	if len(common) > 0 {
		fmt.Fprintf(w, "* %s: %s\n\n", everyTarget, words.Printable(strings.Join(common, ", ")))
	}
}

// everyTarget is how all of them are called.
const everyTarget = "every target"

// cell keeps text in its cell.
func cell(text string) string {
	text = strings.Join(strings.Fields(words.Printable(text)), " ")
	if text == "" {
		return "-"
	}
	return text
}

// causes are all names that led to the decision, and what was accepted.
func causes(target Candidate) []string {
	names := append(slices.Clone(target.Verdict.Blocking), target.Verdict.Undecided...)
	for _, name := range target.Verdict.Accepted {
		names = append(names, name+" (accepted)")
	}
	return names
}

// commonCauses are those that all targets share.
func commonCauses(targets []Candidate) []string {
	if len(targets) == 0 {
		return nil
	}
	count := map[string]int{}
	for _, target := range targets {
		for _, name := range causes(target) {
			count[name]++
		}
	}
	return slices.DeleteFunc(causes(targets[0]), func(name string) bool { return count[name] != len(targets) })
}

// describeCauses lists the causes of one target, with a star for the common
// ones.
func describeCauses(target Candidate, common []string) string {
	var names []string
	if len(common) > 0 {
		names = append(names, "*")
	}
	for _, name := range causes(target) {
		if !slices.Contains(common, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// writeShared tells every finding that is worth it once. Findings of the same
// name with the same end are told together: of their messages, that about the
// newest target.
func writeShared(w io.Writer, targets Targets) {
	type group struct{ name, label string }
	var order []group
	members := map[group][]TargetFinding{}
	for _, f := range targets.Findings {
		if quiet(f.Finding) {
			continue
		}
		key := group{f.Name, label(f.Finding)}
		if members[key] == nil {
			order = append(order, key)
		}
		members[key] = append(members[key], f)
	}
	place := map[string]int{}
	for i, target := range slices.Backward(targets.Targets) {
		place[target.Version] = i
	}
	var page bytes.Buffer
	for _, key := range order {
		writeGroup(&page, targets.Targets, merge(members[key], place))
	}
	if bytes.Contains(page.Bytes(), []byte(AnyTarget)) {
		fmt.Fprintf(w, "Below, %s stands for each of the targets that a finding is about.\n\n", AnyTarget)
	}
	fmt.Fprintf(w, "%s", page.Bytes())
}

// shared is one finding that stands for several.
type shared struct {
	TargetFinding

	// varies is true when others of them read differently.
	varies bool
}

// merge takes the finding about the newest target, for the targets of all.
func merge(findings []TargetFinding, place map[string]int) shared {
	newest := func(f TargetFinding) int {
		least := len(place)
		for _, version := range f.Targets {
			least = min(least, place[version])
		}
		return least
	}
	merged := shared{TargetFinding: findings[0], varies: len(findings) > 1}
	var all []string
	for _, f := range findings {
		all = append(all, f.Targets...)
		if newest(f) < newest(merged.TargetFinding) {
			merged.TargetFinding = f
		}
	}
	merged.Targets = all
	return merged
}

func writeGroup(w io.Writer, targets []Candidate, f shared) {
	fmt.Fprintf(w, "%-8s %s (%s)%s\n", label(f.Finding), words.Printable(f.Name), words.Printable(f.Reason), note(f.Finding))
	if len(f.Targets) > 0 {
		paragraph(w, effect(f.Finding), scope(f.Targets, targets))
	}
	writeDetails(w, f.Finding)
	if f.varies {
		paragraph(w, "", "It is not the same for every target; see: oc preflight targets --to VERSION")
	}
	fmt.Fprintln(w)
}

// scope words which of all targets a finding is about, by minor versions where
// it is about all targets of one.
func scope(about []string, all []Candidate) string {
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

// some are the first of many versions, and how many more there are.
func some(versions []string) []string {
	const most = 6
	if len(versions) <= most {
		return versions
	}
	return append(slices.Clone(versions[:most-1]), fmt.Sprintf("and %d more of %s", len(versions)-most+1, streamOf(versions[0])))
}

// streamOf is the minor version, as in 4.19.z; of what is no version, itself.
func streamOf(version string) string {
	major, rest, ok := strings.Cut(version, ".")
	minor, _, more := strings.Cut(rest, ".")
	if !ok || !more {
		return version
	}
	return major + "." + minor + ".z"
}
