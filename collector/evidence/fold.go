package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

// maxClockDifference is how far the clock of a cluster may be ahead.
const maxClockDifference = time.Hour

// CauseRolledBack is the cause of clusters that run the release before the update again, for whatever reason.
const CauseRolledBack = "RolledBack"

// Threshold is how many clusters have to have regressed by one finding for it to block. The zero value is no number:
// regressions only warn.
type Threshold struct {
	// Regressed of Of clusters: at least so many, and at least that share of the clusters like this one.
	Regressed, Of int
}

// ParseThreshold reads a threshold, such as "2/14".
func ParseThreshold(text string) (Threshold, error) {
	parts := regexp.MustCompile(`^([1-9][0-9]{0,5})/([1-9][0-9]{0,5})$`).FindStringSubmatch(text)
	if parts == nil {
		return Threshold{}, fmt.Errorf("%q is not a number of clusters of another, like 2/14", words.External(text))
	}
	made := Threshold{}
	made.Regressed, _ = strconv.Atoi(parts[1])
	made.Of, _ = strconv.Atoi(parts[2])
	if made.Regressed > made.Of {
		return Threshold{}, fmt.Errorf("%s are more clusters than there are", text)
	}
	return made, nil
}

// String is the threshold as [ParseThreshold] reads it; empty for none.
func (t Threshold) String() string {
	if t.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", t.Regressed, t.Of)
}

func (t Threshold) met(regressed, all int) bool {
	return t.Of > 0 && regressed >= t.Regressed && regressed*t.Of >= t.Regressed*all
}

// ParseFields reads names of fields.
func ParseFields(names []string) ([]Field, error) {
	var fields []Field
	for _, name := range names {
		if !slices.Contains(Fields(), Field(name)) {
			var known []string
			for _, each := range Fields() {
				known = append(known, string(each))
			}
			return nil, fmt.Errorf("%q is none of %s", words.External(name), strings.Join(known, ", "))
		}
		if !slices.Contains(fields, Field(name)) {
			fields = append(fields, Field(name))
		}
	}
	return fields, nil
}

// Settings are what may be chosen about evidence.
type Settings struct {
	// Like are the fields in which clusters are equal that are like each other; nil means DefaultLike.
	Like []Field
	// FailAt is when regressions block; the zero value means that they only warn.
	FailAt Threshold
	// MaxAge is how long a statement counts after the update was judged; 0 means for ever.
	MaxAge time.Duration
	// Now is the time at which statements are counted.
	Now time.Time
}

// Summary is what is known about the update to one target. It is a document.
type Summary struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Target     string `json:"target"`
	// Like are the properties that a cluster has which is like this one; none where no cluster is judged, and all count.
	Like []Property `json:"like"`
	// Alike are the clusters like this one, and Others all others.
	Alike  Tally `json:"alike"`
	Others Tally `json:"others"`
	// Causes are the findings by which clusters regressed, those of the most clusters first.
	Causes []Cause `json:"causes"`
	// FailAt is the threshold; empty for none. Met are the names of the causes that reach it.
	FailAt string   `json:"failAt,omitempty"`
	Met    []string `json:"met,omitempty"`
	// LastTime is when the last of these updates was judged, RFC 3339 in UTC; empty for none.
	LastTime string `json:"lastTime,omitempty"`
	// Refused are texts that do not count, and Notices what else is to be said.
	Refused []string `json:"refused,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// Tally are numbers of clusters by decision.
type Tally struct {
	Good       int `json:"good"`
	Regressed  int `json:"regressed"`
	RolledBack int `json:"rolledBack"`
}

// All is the number of clusters.
func (t Tally) All() int { return t.Good + t.against() }

func (t Tally) against() int { return t.Regressed + t.RolledBack }

func (t Tally) plus(other Tally) Tally {
	return Tally{t.Good + other.Good, t.Regressed + other.Regressed, t.RolledBack + other.RolledBack}
}

func (t *Tally) add(decision afterupdate.Decision) {
	switch decision {
	case afterupdate.Good:
		t.Good++
	case afterupdate.Regressed:
		t.Regressed++
	case afterupdate.RolledBack:
		t.RolledBack++
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
}

// Property is a field with its value.
type Property struct {
	Field Field  `json:"field"`
	Value string `json:"value"`
}

func (p Property) text() string { return p.Field.text() + " " + p.Value }

// Cause is one finding by which clusters regressed.
type Cause struct {
	Name string `json:"name"`
	// Clusters is how many regressed by it, and Alike how many of those are like this one.
	Clusters int `json:"clusters"`
	Alike    int `json:"alike"`
	// Common is what all of them have, and no cluster that is Good has.
	Common []Property `json:"common"`
}

// Kind of a Summary.
const Kind = "PreflightEvidence"

// Fold counts the statements about a target: of each cluster the newest. Without a cluster to compare with, all
// clusters are alike. What is refused, and statements of a time that does not count, are in the summary.
func Fold(known Known, target string, like *afterupdate.Environment, settings Settings) Summary {
	made := Summary{APIVersion: report.APIVersion, Kind: Kind, Target: target, Like: []Property{}, Causes: []Cause{}, FailAt: settings.FailAt.String(), Refused: known.Refused}
	counted, others := settings.newest(known.Statements, target)
	made.Notices = slices.Concat(others, known.Notices)
	if like != nil {
		for _, field := range settings.like() {
			made.Like = append(made.Like, Property{field, field.Of(*like)})
		}
	}
	by := map[string][]Statement{}
	var good []afterupdate.Environment
	for _, stated := range counted {
		if made.alike(stated) {
			made.Alike.add(stated.Decision)
		} else {
			made.Others.add(stated.Decision)
		}
		made.LastTime = max(made.LastTime, words.Time(stated.judged()))
		if stated.Decision == afterupdate.Good {
			good = append(good, stated.Environment)
		}
		for _, name := range stated.causes() {
			by[name] = append(by[name], stated)
		}
	}
	for name, regressed := range by {
		made.Causes = append(made.Causes, made.cause(name, regressed, good))
	}
	slices.SortFunc(made.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Alike, a.Alike), cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Name, b.Name))
	})
	for _, each := range made.Causes {
		if settings.FailAt.met(each.Alike, made.Alike.All()) {
			made.Met = append(made.Met, each.Name)
		}
	}
	return made
}

func (s Settings) like() []Field {
	if s.Like == nil {
		return DefaultLike()
	}
	return s.Like
}

// newest are the statements that count, the last of each cluster, sorted by cluster, and notices about those whose time
// does not count. Of two of one time, that against the update counts.
func (s Settings) newest(statements []Statement, target string) (counted []Statement, notices []string) {
	last, future, old := map[string]Statement{}, 0, 0
	for _, stated := range statements {
		at, id := stated.judged(), strings.ToLower(stated.Cluster)
		switch {
		case stated.To != target:
		case at.Sub(s.Now) > maxClockDifference:
			future++
		case s.MaxAge > 0 && s.Now.Sub(at) > s.MaxAge:
			old++
		default:
			other, known := last[id]
			if order := at.Compare(other.judged()); !known || order > 0 || order == 0 && other.Decision == afterupdate.Good {
				last[id] = stated
			}
		}
	}
	if future > 0 {
		notices = append(notices, fmt.Sprintf("%s not counted, whose time is more than an hour ahead of %s", words.Count(future, "statement"), words.Time(s.Now)))
	}
	if old > 0 {
		notices = append(notices, fmt.Sprintf("%s not counted, older than %s", words.Count(old, "statement"), s.MaxAge))
	}
	for _, id := range slices.Sorted(maps.Keys(last)) {
		counted = append(counted, last[id])
	}
	return counted, notices
}

// Last is the version of the update that was judged last, of one time the highest in the order of text; empty for none.
func Last(statements []Statement) string {
	if len(statements) == 0 {
		return ""
	}
	return slices.MaxFunc(statements, func(a, b Statement) int {
		return cmp.Or(a.judged().Compare(b.judged()), strings.Compare(a.To, b.To))
	}).To
}

// causes are the names of that by which the update was not good.
func (s Statement) causes() []string {
	if s.Decision == afterupdate.Good {
		return nil
	}
	var names []string
	for _, each := range s.Regressions {
		names = append(names, each.Name)
	}
	if s.Decision == afterupdate.RolledBack {
		names = append(names, CauseRolledBack)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func (s Summary) alike(stated Statement) bool {
	return !slices.ContainsFunc(s.Like, func(p Property) bool { return p.Field.Of(stated.Environment) != p.Value })
}

func (s Summary) cause(name string, regressed []Statement, good []afterupdate.Environment) Cause {
	made := Cause{Name: name, Clusters: len(regressed), Common: []Property{}}
	for _, stated := range regressed {
		if s.alike(stated) {
			made.Alike++
		}
	}
	if len(good) == 0 {
		return made // what all clusters have explains nothing
	}
	for _, field := range Fields() {
		value := field.Of(regressed[0].Environment)
		differs := func(stated Statement) bool { return field.Of(stated.Environment) != value }
		has := func(of afterupdate.Environment) bool { return field.Of(of) == value }
		if value != "" && !slices.ContainsFunc(regressed, differs) && !slices.ContainsFunc(good, has) {
			made.Common = append(made.Common, Property{field, value})
		}
	}
	return made
}

// maxCauses is how many causes a sentence names.
const maxCauses = 5

// Sentence states the counts of all clusters, as a clause: "12 of 14 clusters that took 4.19.12 were good; 2
// regressed: IngressCanary (both with load balancer UserManaged)".
func (s Summary) Sentence() string {
	all := s.Alike.plus(s.Others)
	if all.All() == 0 {
		return "no cluster has stated how its update to " + s.Target + " was"
	}
	text := fmt.Sprintf("%d of %s that took %s were good", all.Good, words.Count(all.All(), "cluster"), s.Target)
	if all.All() == 1 {
		text = fmt.Sprintf("the update to %s of 1 cluster was good", s.Target)
		if all.Good == 0 {
			text = fmt.Sprintf("the update to %s of 1 cluster was not good", s.Target)
		}
	}
	if all.Regressed > 0 {
		text += fmt.Sprintf("; %d regressed", all.Regressed)
	}
	if all.RolledBack > 0 {
		text += fmt.Sprintf("; %d rolled back", all.RolledBack)
	}
	var causes []string
	for _, each := range s.Causes {
		if each.Name != CauseRolledBack || len(each.Common) > 0 {
			causes = append(causes, each.text(all.against()))
		}
	}
	if len(causes) > 0 {
		text += ": " + words.List(causes, maxCauses)
	}
	return text
}

// text is the name with the number of clusters, unless it is all, and what they have in common.
func (c Cause) text(all int) string {
	var parts []string
	count := fmt.Sprintf("%d of them", c.Clusters)
	if c.Clusters == all {
		count = map[bool]string{true: "both", false: "all"}[all == 2]
	}
	if len(c.Common) > 0 {
		var common []string
		for _, each := range c.Common {
			common = append(common, each.text())
		}
		with := "with " + words.List(common, len(common))
		if all > 1 {
			with = count + " " + with
		}
		parts = append(parts, with)
	} else if c.Clusters != all {
		parts = append(parts, count)
	}
	if len(parts) == 0 {
		return c.Name
	}
	return c.Name + " (" + strings.Join(parts, ", ") + ")"
}
