package cvo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lister reads objects from a cache, as the listers of CVO do.
type Lister[Object any] interface {
	Get(name string) (Object, error)
}

// Verdicts reads the published verdicts. Its methods may be called concurrently. The
// methods OnAdd, OnUpdate and OnDelete implement cache.ResourceEventHandler of client-go.
type Verdicts struct {
	version, published func() (any, error)
	isNotFound         func(error) bool
	changed            func()

	mutex sync.Mutex
	// installed is true once the ConfigMap was present, until it was marked as uninstalled.
	installed bool
	// events counts the events: what was read before the last one may be older than it.
	events int
}

// New reads ClusterVersion "version" and the ConfigMap, whose lister has the objects of Namespace. The other arguments
// are apierrors.IsNotFound of apimachinery, and a function that is called when the verdicts have changed, or nil. The
// caches must have synced before the first update is evaluated: an empty cache has no ConfigMap.
func New[V, M any](versions Lister[V], configMaps Lister[M], isNotFound func(error) bool, changed func()) *Verdicts {
	if changed == nil {
		changed = func() {}
	}
	return &Verdicts{
		version:    func() (any, error) { return versions.Get("version") },
		published:  func() (any, error) { return configMaps.Get(Name) },
		isNotFound: isNotFound, changed: changed,
	}
}

// Selected is the problem with the update that ClusterVersion selects, whose release has
// that version; nil if there is none.
func (v *Verdicts) Selected(version string) *Problem {
	return v.problems([]string{version}, clusterVersion.selected)[0]
}

// Offered are the problems with the available or conditional updates with these versions,
// one for each; nil for one without a problem.
func (v *Verdicts) Offered(versions []string) []*Problem {
	return v.problems(versions, clusterVersion.offered)
}

func (v *Verdicts) problems(versions []string, resolve func(clusterVersion, string) target) []*Problem {
	problems := make([]*Problem, len(versions))
	state, data, err := v.read()
	if state == absent {
		return problems
	}
	var cluster clusterVersion
	if err == nil {
		cluster, err = v.cluster()
	}
	for i, version := range versions {
		switch of := resolve(cluster, version); {
		case err != nil:
			problems[i] = of.unreadable(err)
		case state == gone:
			problems[i] = of.deleted()
		default:
			problems[i] = of.problem(data[strings.ReplaceAll(of.digest, ":", "-")])
		}
	}
	return problems
}

// state is whether the ConfigMap exists and can be read.
type state int

const (
	// absent: the preflight is not installed. gone: it was, and the ConfigMap was deleted.
	absent state = iota
	gone
	present
)

// read reads the ConfigMap. One that cannot be read is present.
func (v *Verdicts) read() (state, map[string]string, error) {
	events := v.observed()
	object, err := v.published()
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err != nil && v.isNotFound(err) {
		if v.installed {
			return gone, nil, nil
		}
		return absent, nil, nil
	}
	if err != nil {
		return present, nil, err
	}
	var found configMap
	err = decode(object, &found)
	if v.events == events {
		v.installed = !found.isUninstalled()
	}
	if found.isUninstalled() {
		return absent, nil, nil
	}
	return present, found.Data, err
}

// observed is the number of events until now.
func (v *Verdicts) observed() int {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.events
}

// configMap has the fields of a ConfigMap that are used.
type configMap struct{ Data map[string]string }

func (c configMap) isUninstalled() bool { return c.Data[uninstalled] == "true" }

func (v *Verdicts) cluster() (clusterVersion, error) {
	var read clusterVersion
	object, err := v.version()
	if err == nil {
		err = decode(object, &read)
	}
	return read, err
}

// decode reads an object by its JSON form, which the API defines.
func decode(object, into any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%T cannot be encoded: %w", object, err)
	}
	return json.Unmarshal(text, into)
}

// OnAdd is called with each ConfigMap that was created in Namespace.
func (v *Verdicts) OnAdd(object any, _ bool) { v.observe(object) }

// OnUpdate is called with each ConfigMap that was changed in Namespace.
func (v *Verdicts) OnUpdate(_, object any) { v.observe(object) }

// OnDelete must be called with the last known state of each ConfigMap that was deleted in Namespace: only this state
// shows that the ConfigMap was marked immediately before.
func (v *Verdicts) OnDelete(object any) { v.observe(object) }

func (v *Verdicts) observe(object any) {
	named, ok := object.(interface{ GetName() string })
	if !ok || named.GetName() != Name {
		return
	}
	var found configMap
	if err := decode(object, &found); err == nil {
		v.mutex.Lock()
		v.installed = !found.isUninstalled()
		v.events++
		v.mutex.Unlock()
	}
	v.changed()
}

// The reasons of a Problem.
const (
	ReasonInProgress = "PreflightInProgress"
	ReasonBlocked    = "PreflightBlocked"
	ReasonUndecided  = "PreflightUndecided"
	ReasonMissing    = "PreflightMissing"
	ReasonStale      = "PreflightStale"
	ReasonForced     = "PreflightForced"
	// ReasonAccepted and ReasonNarrowed are warnings: the verdict depends on accepted
	// findings, or the request left something out.
	ReasonAccepted = "PreflightAccepted"
	ReasonNarrowed = "PreflightNarrowed"
)

// Problem is why an update may not start, or what CVO records when it does.
type Problem struct {
	// Reason is one of the constants.
	Reason, Message string
	// Warning is true for a problem that does not block.
	Warning bool
	// Since is when the verdict was given, or when it ended; zero without a verdict.
	Since time.Time
	// Nested is the cause, for the log of CVO.
	Nested error
}

// problem is the problem with the target by its published verdicts; nil if there is none.
func (t target) problem(entry string) *Problem {
	v, running, err := t.newest(entry)
	p := func(reason, text string) *Problem {
		return &Problem{Reason: reason, Message: "the preflight of " + t.version + " " + text, Since: v.since()}
	}
	switch {
	case err != nil:
		return t.unreadable(err)
	case v != nil && v.isValid(t.from) && v.Decision == "Ready" && !v.Forced:
		return v.warning(p)
	case running:
		return p(ReasonInProgress, "is in progress; see: oc preflight status --to "+t.version)
	case v == nil:
		return p(ReasonMissing, "is not recorded; run: oc preflight run --to "+t.version)
	case !v.isValid(t.from):
		return p(ReasonStale, "is out of date"+v.cause()+"; run: oc preflight run --to "+t.version)
	case v.Forced:
		past := names(append(append([]string{}, v.Blocking...), v.Undecided...))
		return p(ReasonForced, "was forced past "+past+", which does not permit an update: force the update itself, "+
			"or run: oc preflight run --to "+
			t.version)
	case v.Decision == "Blocked":
		return p(ReasonBlocked, "is Blocked by "+names(v.Blocking)+"; see: oc preflight status --to "+t.version)
	}
	return p(ReasonUndecided, "is Undecided because of "+names(v.Undecided)+"; see: oc preflight status --to "+t.version)
}

// cause is why the verdict ended before its time, after a colon; empty where it did not.
func (v verdict) cause() string {
	if v.Ended == "" {
		return ""
	}
	return ": " + v.Ended
}

// unreadable is the problem where the verdict cannot be read.
func (t target) unreadable(cause error) *Problem {
	return &Problem{
		Reason: ReasonUndecided, Message: "the preflight of " + t.version + " cannot be read; see: oc preflight status --to " + t.version,
		Nested: cause,
	}
}

// deleted is the problem where the ConfigMap was deleted, and not by an uninstallation.
func (t target) deleted() *Problem {
	return &Problem{
		Reason: ReasonMissing,
		Message: "the preflight of " + t.version + " is unknown, since ConfigMap " + Namespace + "/" + Name +
			" was deleted; start the controller, or, if it was uninstalled, run: oc create configmap " +
			Name + " -n " + Namespace + " --from-literal=" + uninstalled + "=true",
	}
}

// warning returns the warning that CVO records for an update that may start; nil for none.
func (v verdict) warning(p func(reason, text string) *Problem) *Problem {
	reason, text := "", "is Ready"
	if len(v.Narrowed) > 0 {
		reason = ReasonNarrowed
	}
	if len(v.Accepted) > 0 {
		reason = ReasonAccepted
	}
	if reason == "" {
		return nil
	}
	if len(v.Accepted) > 0 {
		text += " with accepted findings: " + names(v.Accepted)
	}
	if len(v.Narrowed) > 0 {
		text += "; it excluded " + names(v.Narrowed)
	}
	warning := p(reason, text)
	warning.Warning = true
	return warning
}

// names are the first five names in order.
func names(all []string) string {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return "nothing"
	}
	if len(sorted) > 5 {
		sorted = append(sorted[:5], "others")
	}
	return strings.Join(sorted, ", ")
}

// Namespace and Name identify the ConfigMap with the published verdicts. Its key of a
// release is the digest of its image with "-" for ":", and the value a JSON list of verdict.json
// (package runner/record).
const (
	Namespace = "openshift-config-managed"
	Name      = "update-preflight"
)

// uninstalled is the key that is "true" before an uninstallation deletes the ConfigMap.
const uninstalled = "uninstalled"

// verdict has the fields of verdict.json (package runner/record) that are used; JSON
// spells them with a small first letter. Times are RFC 3339, in UTC.
type verdict struct {
	Digest, Version, Phase, Decision, CompletionTime, ValidUntil, From, Ended string
	Blocking, Undecided, Accepted, Narrowed                                   []string
	Provisional, Forced                                                       bool
}

// target is an update of the cluster.
type target struct {
	// digest identifies the release image, "sha256:" and hex digits; empty where it is
	// unknown. from is the version that the cluster runs.
	version, digest, from string
}

// newest decodes a list of verdict.json. It returns the complete run of the target that
// ended last, nil without one, and whether another run is in progress. Of a path only its
// first update counts.
func (t target) newest(entry string) (newest *verdict, running bool, err error) {
	if entry == "" || t.digest == "" {
		return nil, false, nil
	}
	var all []verdict
	if err := json.Unmarshal([]byte(entry), &all); err != nil { //nolint:musttag // fewer lines for CVO to link
		return nil, false, fmt.Errorf("the published verdicts on %s cannot be decoded: %w", t.digest, err)
	}
	for _, found := range all {
		switch {
		case found.Digest != t.digest || found.Version != t.version || found.Provisional:
		case found.Phase == "Running":
			running = true
		case found.Phase == "Complete" && (newest == nil || found.isAfter(*newest)):
			newest = &found
		}
	}
	return newest, running, nil
}

// isAfter reports whether the run ended after another; of two that ended in the same
// second, one that is not Ready is the later one.
func (v verdict) isAfter(other verdict) bool {
	return v.CompletionTime > other.CompletionTime || v.CompletionTime == other.CompletionTime && other.Decision == "Ready"
}

// isValid reports whether the verdict holds: it is about an update from the present
// version, and has not ended.
func (v verdict) isValid(from string) bool {
	return v.From == from && time.Now().UTC().Format(time.RFC3339) < v.ValidUntil
}

// since is when the verdict was given, or when it ended; zero where there is none, or its
// time is unknown.
func (v *verdict) since() time.Time {
	if v == nil {
		return time.Time{}
	}
	given, _ := time.Parse(time.RFC3339, v.CompletionTime)
	if ended, err := time.Parse(time.RFC3339, v.ValidUntil); err == nil && ended.After(given) && !ended.After(time.Now()) {
		return ended
	}
	return given
}

// Gate is a precondition of CVO: Gate[precondition.ReleaseContext] implements
// precondition.Precondition. All fields are required.
type Gate[R any] struct {
	// Version is the version of the update.
	Version func(R) string
	// Refuse converts a problem into CVO's error.
	Refuse func(Problem) error
	// The method [Verdicts.Selected].
	Judge func(version string) *Problem
}

// Name implements precondition.Precondition.
func (*Gate[R]) Name() string { return "Preflight" }

// Run implements precondition.Precondition: nil if the newest verdict on the update is
// Ready and valid, or if the preflight is not installed.
func (g *Gate[R]) Run(_ context.Context, release R) error {
	if problem := g.Judge(g.Version(release)); problem != nil {
		return g.Refuse(*problem)
	}
	return nil
}
