package afterupdate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
)

// Course is the history of a cluster since the update: how its last state compares with the baseline, and for how
// long each problem has lasted. It does not keep the states, which take megabytes. The zero value has no samples.
type Course struct {
	Past

	last       seenLast
	comparison regression.Comparison
	recovered  recovery
}

// seenLast is the last sample without its objects.
type seenLast struct {
	unread map[baseline.Kind]string
	// forbidden are the unread kinds that the user may not list.
	forbidden map[baseline.Kind]bool
	apis      map[baseline.Kind]baseline.API
	progress  settling.Progress
	names     map[baseline.Key]baseline.Key
}

// Problem identifies a problem of an object.
type Problem struct {
	Key    baseline.Key
	Reason string
}

// Seen is the history of a problem in the samples.
type Seen struct {
	// Began is when it began for the first time, at the earliest; zero where no sample was without it. First is when it was seen first.
	Began, First time.Time
	// Since is since when it has been there without a break; Ended is when it was not seen any more, zero while it is.
	Since, Ended time.Time
	// Bad is for how long it was there, and Times how often it began, while no node was being updated.
	Bad   time.Duration
	Times int
	// Found is the last one.
	Found regression.Found
}

// recovery is when an object that makes the update was good again for the last time.
type recovery struct {
	key baseline.Key
	at  time.Time
}

// Sample is one look at a cluster after an update.
type Sample struct {
	State    baseline.State
	Progress settling.Progress
	// Names maps the keys of a redacted state to the replaced ones; nil for a state that is not redacted.
	Names map[baseline.Key]baseline.Key
}

// And is the course with one more sample, compared with the baseline; nil for none. One that is not later than the
// last one, such as after the clock was set back, begins the course anew.
func (c Course) And(before *baseline.State, sample Sample) Course {
	if c.Number > 0 && !sample.State.Taken.After(c.Last) {
		c = Course{}
	}
	next := Course{
		Past: Past{
			Number: c.Number + 1, First: c.First, Last: sample.State.Taken, Problems: map[Problem]Seen{},
			Cordoned: map[baseline.Key]bool{}, Restarts: map[baseline.Key]Growth{},
		},
		last: seenLast{
			unread: sample.State.Unread, forbidden: sample.State.Forbidden, apis: sample.State.APIs, progress: sample.Progress,
			names: sample.Names,
		},
	}
	if next.First.IsZero() {
		next.First = sample.State.Taken
	}
	for kind := range sample.State.Unread {
		if !sample.State.Forbidden[kind] {
			next.Gaps = c.Gaps + 1
		}
	}
	sample.State.Objects = next.restarting(c.Restarts, sample.State.Objects)
	next.comparison = regression.Compare(before, sample.State, regression.Seen{Cordoned: c.Cordoned})
	next.note(c.Cordoned, sample.State, before)
	next.follow(c.Past, before, sample.State)
	return next
}

// note notes the nodes that are or were cordoned, and which object of before has recovered last.
func (c *Course) note(cordoned map[baseline.Key]bool, state baseline.State, before *baseline.State) {
	for key := range cordoned {
		c.Cordoned[key] = true
	}
	for key, object := range state.Objects {
		if object.Cordoned {
			c.Cordoned[key] = true
		}
		if before == nil || !baseline.RowOf(key.Kind).Updating {
			continue
		}
		if _, known := before.Objects[key]; known && object.Recovered.After(c.recovered.at) {
			c.recovered = recovery{key, object.Recovered}
		}
	}
}

// Growth is how the restarts of a workload have grown from sample to sample, while no node was being updated.
type Growth struct {
	Total int64 `json:"total"`
	// Times is how many samples had more of them than the one before, the first one at Since and the last one at Latest.
	Times  int       `json:"times,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Latest time.Time `json:"latest,omitzero"`
}

// restarting returns the objects of a sample, with an added problem where containers restart from time to time,
// which a single sample does not show. A single restart may have any cause.
func (c *Course) restarting(before map[baseline.Key]Growth, objects map[baseline.Key]baseline.Object) map[baseline.Key]baseline.Object {
	found := map[baseline.Key]baseline.Object{}
	for key, object := range objects {
		was, known := before[key]
		grown := Growth{Total: object.Restarted, Times: was.Times, Since: was.Since, Latest: was.Latest}
		if c.Last.Sub(grown.Latest) > forgotten {
			grown.Times = 0
		}
		if c.Number > 1 && object.Restarted > was.Total && !c.last.progress.Draining && !c.last.progress.Settled.After(c.Last) {
			grown.Times++
			grown.Latest = c.Last
			if grown.Times == 1 {
				grown.Since = c.Last
			}
		}
		if object.Restarted > 0 || known {
			c.Restarts[key] = grown
		}
		if grown.Times > 1 {
			object.Problems = slices.Clone(object.Problems)
			object.Add(baseline.Problem{
				Reason: regression.Hourly, Since: grown.Since,
				Message: "containers of its pods have restarted " + words.Count(int64(grown.Times), "time") + " since " + words.Time(grown.Since),
			})
			found[key] = object
		}
	}
	if len(found) == 0 {
		return objects
	}
	objects = maps.Clone(objects)
	maps.Copy(objects, found)
	return objects
}

// forgotten is after which time a problem that has ended is no part of the course any more.
const forgotten = 2 * time.Hour

// follow notes for how long each problem has been there, given what was seen before.
func (c *Course) follow(past Past, before *baseline.State, state baseline.State) {
	for _, each := range c.comparison.Found {
		at := Problem{each.Key, each.Problem.Reason}
		seen, known := past.Problems[at]
		c.Problems[at] = c.again(seen, known, past.Last, each, believed(each, before))
	}
	for at, seen := range past.Problems {
		if _, again := c.Problems[at]; again {
			continue
		}
		switch {
		case c.last.unread[at.Key.Kind] != "": // what was not read now is no break
		case seen.Ended.IsZero():
			seen.Ended = c.Last
			seen.Bad += c.counted(past.Last, c.Last) / 2 //nolint:mnd // the midpoint, because it ended between two samples
		case c.Last.Sub(seen.Ended) > forgotten:
			continue
		}
		c.Problems[at] = seen
		_, exists := state.Objects[at.Key]
		there := (exists || at.Key.Kind == baseline.Alert) && !slices.Contains(c.comparison.Stopped, at.Key)
		if there && seen.Found.Class == regression.Worse && !seen.Ended.IsZero() && seen.recurs(c.Last) &&
			c.Last.Sub(seen.Ended) < resting(seen) {
			seen.Found.Problem.Since, seen.Found.Problem.Message = seen.Since, seen.share(c.Last)
			c.comparison.Found = append(c.comparison.Found, seen.Found)
		}
	}
}

// again is a problem that a sample has. One whose object states a later beginning than the last sample was good in between.
func (c *Course) again(seen Seen, known bool, last time.Time, found regression.Found, own time.Time) Seen {
	began := c.Last
	if !own.IsZero() && own.Before(began) {
		began = own
	}
	anew := !known || !seen.Ended.IsZero() || !own.IsZero() && !last.IsZero() && own.After(last) && own.After(seen.Since)
	switch {
	case !known:
		seen.Since, seen.First = began, c.Last
		if seen.Began = last; !own.IsZero() {
			seen.Began = own
		}
	case anew:
		seen.Since = began
	case !own.IsZero() && own.Before(seen.Since) && seen.Times <= 1:
		seen.Since = own
	}
	if anew {
		seen.Times++
	}
	from := began
	if last.After(from) {
		from = last
	}
	if own.IsZero() && anew && !last.IsZero() {
		from = last.Add(c.Last.Sub(last) / 2) //nolint:mnd // the midpoint, because it began between two samples
	}
	seen.Bad += c.counted(from, c.Last)
	seen.Ended, seen.Found = time.Time{}, found
	return seen
}

// counted is a time, as far as no node was being updated.
func (c *Course) counted(from, to time.Time) time.Duration {
	if c.last.progress.Draining {
		return 0
	}
	return to.Sub(from)
}

// believed is since when the object of a problem states it; zero where it states nothing, or what the baseline contradicts.
func believed(found regression.Found, before *baseline.State) time.Time {
	own := found.Problem.Since
	if before == nil || own.IsZero() || found.Class == regression.Unchanged {
		return own
	}
	if was, known := before.Objects[found.Key]; known && own.Before(before.Taken) {
		if _, had := was.Problem(found.Problem.Reason); !had {
			return time.Time{}
		}
	}
	return own
}

// What makes a problem that comes and goes count: a share of the time, of at least half of its limit.
const (
	timesAtLeast, shareAtLeast = 3, 4
	// One that began again is there for its limit, and half of the time.
	againAtLeast, halfAtLeast = 2, 2
)

// recurs reports whether a problem comes and goes, and was there for long enough.
func (s Seen) recurs(now time.Time) bool {
	limit := baseline.RowOf(s.Found.Key.Kind).LimitOf(s.Found.Problem.Reason)
	span := now.Sub(s.start())
	often := s.Times >= timesAtLeast && s.Bad >= limit/2 && shareAtLeast*s.Bad >= span
	long := s.Times >= againAtLeast && s.Bad >= limit && halfAtLeast*s.Bad >= span
	return span >= limit && (often || long)
}

// start is when it began for the first time, as far as that is known.
func (s Seen) start() time.Time {
	if s.Began.IsZero() {
		return s.First
	}
	return s.Began
}

// share states for how much of the time it was there.
func (s Seen) share(now time.Time) string {
	return fmt.Sprintf("%s, for %s of the last %s", words.Count(s.Times, "time"), s.Bad.Round(time.Minute),
		now.Sub(s.start()).Round(time.Minute))
}

// resting is how long a problem has to be over before it is.
func resting(s Seen) time.Duration {
	const longest = 30 * time.Minute
	return min(baseline.RowOf(s.Found.Key.Kind).LimitOf(s.Found.Problem.Reason), longest)
}

// listed are the entries of causes, at most MaxListed, and how many there are.
func (j evaluation) listed(causes []cause) ([]Regression, int) {
	entries := make([]Regression, 0, min(len(causes), MaxListed))
	for _, each := range causes[:min(len(causes), MaxListed)] {
		root := each.found[0]
		since := j.timing.course.Problems[Problem{root.Key, root.Problem.Reason}].Since
		counts := ""
		if each.group == pending && !j.timing.held(root) && j.timing.counts(root).After(j.timing.now) {
			counts = timeOf(j.timing.counts(root))
		}
		root.Key = j.timing.course.named(root.Key)
		entry := Regression{
			Name: nameOf(root), Object: j.apis().objectOf(root.Key), Was: root.Was, Is: isOf(root), Since: timeOf(since), CountsTime: counts,
			Step: stepOf(j.timing.course.last.progress.Steps, root, since), Command: j.apis().inspect(root.Key).Command,
			Action: j.apis().inspect(root.Key),
		}
		for _, follows := range each.found[1:min(len(each.found), maxFolded+1)] {
			follows.Key = j.timing.course.named(follows.Key)
			entry.Follows = append(entry.Follows, Folded{Name: nameOf(follows), Object: j.apis().objectOf(follows.Key), Is: isOf(follows)})
		}
		entry.Unlisted = len(each.found) - 1 - len(entry.Follows)
		entries = append(entries, entry)
	}
	return entries, len(causes)
}

// maxFolded bounds the problems of a cause that are listed.
const maxFolded = 20

// named is the key with the name of its object, also where the state has a hash of it.
func (c Course) named(key baseline.Key) baseline.Key {
	if name, redacted := c.last.names[key]; redacted {
		return name
	}
	return key
}

// maxText bounds a clause of an entry, in bytes.
const maxText = 500

func isOf(found regression.Found) string {
	return words.Line(strings.TrimSuffix(found.Problem.Reason+": "+found.Problem.Message, ": "), maxText)
}

// notInName are the characters that no name of a finding has.
var notInName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameOf is the name of a finding. It has the name of an object only if the release decides about that.
func nameOf(found regression.Found) string {
	key := found.Key
	name := key.Kind.Name() + found.Problem.Reason
	alert, _, _ := strings.Cut(key.Name, "/")
	switch {
	case key.Kind == baseline.Alert && (key.Namespace == "" || key.Platform()):
		name = "AlertFiring-" + alert
	case key.Kind == baseline.ClusterOperator, key.Namespace != "" && key.Platform() &&
		(baseline.RowOf(key.Kind).Pods || key.Kind == baseline.Service):
		name += "-" + key.Name
	}
	return notInName.ReplaceAllString(name, "-")
}

// apis are the APIs of kinds: now, and in the baseline, which is nil without one.
type apis struct {
	seen   map[baseline.Kind]baseline.API
	before *baseline.State
}

func (j evaluation) apis() apis { return apis{j.timing.course.last.apis, j.timing.question.Before} }

func (a apis) objectOf(key baseline.Key) finding.Object {
	version, _ := a.apiOf(key.Kind)
	return finding.Object{APIVersion: version, Kind: key.Kind.Name(), Namespace: key.Namespace, Name: key.Name}
}

// apiOf is the API of a kind: now, or in the baseline.
func (a apis) apiOf(kind baseline.Kind) (version, resource string) {
	if version, resource := (baseline.State{APIs: a.seen}).APIOf(kind); version != "" || a.before == nil {
		return version, resource
	}
	return a.before.APIOf(kind)
}

// inspect shows the object, or for a key that names no object, all of its kind.
func (a apis) inspect(key baseline.Key) finding.Action {
	_, plural := a.apiOf(key.Kind)
	var made finding.Action
	switch key.Kind { //nolint:exhaustive // "oc get KIND NAME" shows the others
	case baseline.Alert:
		alert, _, _ := strings.Cut(key.Name, "/")
		return finding.Read("oc get prometheusrules -A -o yaml | grep -A 20 -F %s", "alert: "+alert)
	case baseline.VolumeAttachment, baseline.ClusterServiceVersion:
		made = finding.Read("oc get %s", plural)
	case baseline.CertificateSigningRequest:
		made = finding.Read("oc get certificatesigningrequest %s -o yaml", key.Name)
	default:
		made = finding.Read("oc describe %s %s", plural, key.Name)
	}
	if key.Kind == baseline.HostedCluster || key.Kind == baseline.NodePool {
		made = made.In(finding.Management)
	}
	return made.Namespaced(key.Namespace)
}

// The time within which a problem follows a step that may have caused it.
const (
	afterReboot = time.Hour
	afterStep   = 30 * time.Minute
)

// stepOf is the last step before a problem began; for a problem on a node that was rebooted, that.
func stepOf(steps []settling.Step, found regression.Found, since time.Time) string {
	node := found.Problem.Node
	if found.Key.Kind == baseline.Node {
		node = found.Key.Name
	}
	nearest := ""
	for _, step := range steps {
		took := since.Sub(step.Time)
		if node != "" && step.Node == node && took.Abs() <= afterReboot {
			return step.Text
		}
		if took >= 0 && took <= afterStep {
			nearest = fmt.Sprintf("%s, %s before", step.Text, took.Round(time.Second))
		}
	}
	return nearest
}
