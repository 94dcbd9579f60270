package launch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload"
)

// Check is one Job of a release that conforms to the policy.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its release. The names
	// of the Job's findings start with the part before the dot.
	Name string
	// Component is the name in the release, File that of the manifest.
	Component, File string
	// Framed is true when the author promised a result in the SDK's format:
	// annotation preflight.openshift.io/result: framed of the Job.
	Framed bool
	// Serial is true when the check must not run concurrently with other serial
	// checks of its component: annotation preflight.openshift.io/serial: "true" of the Job.
	Serial bool
	// Job is the author's in a Draft, and the one to create in a Plan.
	Job *batchv1.Job

	// needs are the supporting objects that must exist first.
	needs []reference
	// site is true for a check of the site instead of the release.
	site bool
}

// Prefix is the part of the check's name before the dot, with which the names of
// its findings start.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Draft is the named checks of a release that conform to the policy for manifests.
// It is the same for every run.
type Draft struct {
	// Checks are in the order of the manifests in the release.
	Checks []Check
	// Refused has one finding for each Job that violates the policy.
	Refused []finding.Finding

	// catalog has the supporting objects of the release, siteCatalog those of the checks
	// of the site.
	catalog, siteCatalog catalog
	// path is the update path ("4.18.1,4.19.2"); empty if unknown.
	path string
}

// Plan is the objects that one run creates.
type Plan struct {
	Run Run
	// Checks are in the order of the draft.
	Checks []Check
	// Supporting are the temporary copies that the checks need, bindings last.
	Supporting []payload.Object

	// copies are the copies of the cluster's ServiceAccounts, by the copy.
	copies map[reference]accountCopy
	// clusterRoles are the rules of the cluster's roles that the release binds, by name;
	// unreadRoles is the error of reading them.
	clusterRoles map[string][]rbacv1.PolicyRule
	unreadRoles  error
}

// NewDraft returns the checks of a release for a cluster at the version from. It is
// pure and deterministic. Jobs that violate the policy, or need a supporting object
// that does, are in Refused and not in Checks.
func NewDraft(from string, release *payload.Release) Draft {
	b := builder{images: map[string]bool{}, catalog: newCatalog(release.Supporting), names: map[string]int{}, jobs: map[reference]string{}}
	for _, image := range release.Images {
		b.images[image] = true
	}
	draft := Draft{catalog: b.catalog}
	// The path is known only if the release can be reached directly.
	if slices.Contains(release.Previous, from) {
		draft.path = from + "," + release.Version
	}
	for _, manifest := range release.Jobs {
		check, violations := b.check(manifest)
		if len(violations) > 0 {
			draft.Refused = append(draft.Refused, rejected(check, manifest.Job, violations))
			continue
		}
		draft.Checks = append(draft.Checks, check)
	}
	return draft
}

// Along returns the draft for a cluster that goes through these versions, its own first,
// before it updates to the release.
func (d Draft) Along(before []string, release string) Draft {
	d.path = strings.Join(append(slices.Clone(before), release), ",")
	return d
}

// Identity is equal for checks that do the same in two releases: their names, Jobs with
// the digests of the images, and supporting objects are equal. It is false for a check
// that cannot be compared.
func (d Draft) Identity(check Check) (string, bool) {
	same := struct {
		Name       string           `json:"name"`
		Component  string           `json:"component"`
		Job        *batchv1.Job     `json:"job"`
		Supporting []payload.Object `json:"supporting"`
	}{Name: check.Name, Component: check.Component, Job: check.Job}
	for _, need := range check.needs {
		same.Supporting = append(same.Supporting, d.catalogOf(check).manifests[need].manifest.Object)
	}
	text, err := json.Marshal(same)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), true
}

// Bind returns the plan of one run: the names, labels and deadlines of its objects
// depend on the run. Supporting objects that no check needs are omitted.
func (d Draft) Bind(run Run) Plan {
	plan := Plan{Run: run, Checks: make([]Check, 0, len(d.Checks))}
	for _, check := range d.Checks {
		plan.Checks = append(plan.Checks, binder{run: run, catalog: d.catalogOf(check), path: d.path}.check(check))
	}
	for _, catalog := range []catalog{d.catalog, d.siteCatalog} {
		b := binder{run: run, catalog: catalog, path: d.path}
		for _, ref := range catalog.references() {
			plan.Supporting = append(plan.Supporting, b.supporting(catalog.manifests[ref]))
		}
	}
	plan.prune()
	slices.SortFunc(plan.Supporting, func(a, b payload.Object) int { return compareReferences(referenceTo(a), referenceTo(b)) })
	return plan
}

// builder drafts checks.
type builder struct {
	images  map[string]bool
	catalog catalog
	// names counts the checks of a name, jobs has the file of each Job.
	names map[string]int
	jobs  map[reference]string
}

// check drafts the check of one manifest. Its name is set also with violations.
func (b builder) check(manifest payload.Job) (Check, []violation) {
	job := manifest.Job
	check := Check{
		Name: b.uniqueName(manifest), Component: manifest.Component, File: manifest.File,
		Framed: job.Annotations[annotationResult] == resultFramed,
		Serial: job.Annotations[annotationSerial] == serialTrue,
		Job:    job,
	}
	violations := jobViolations(job, b.images)
	ref := reference{"Job", job.Namespace, job.Name}
	if first, ok := b.jobs[ref]; ok {
		violations = append(violations, violation{ReasonRefusedManifest, "metadata.name", "is a duplicate of the Job in " + first})
	}
	b.jobs[ref] = manifest.File
	violations = located(violations, manifest.Lines)

	check.needs = b.catalog.closure(b.catalog.referredBy(job))
	for _, need := range check.needs {
		needed := b.catalog.manifests[need]
		for _, f := range located(needed.violations, needed.manifest.Lines) {
			f.path = fmt.Sprintf("%s (%s): %s", need, needed.manifest.File, f.path)
			violations = append(violations, f)
		}
	}
	return check, violations
}

// located adds the line of the manifest to the path of each violation, if known.
func located(violations []violation, lines payload.Lines) []violation {
	found := slices.Clone(violations)
	for i := range found {
		if line := lines.Of(found[i].path); line > 0 {
			found[i].path += fmt.Sprintf(" (line %d)", line)
		}
	}
	return found
}

// uniqueName numbers checks with the same name, in the order of the manifests.
func (b builder) uniqueName(manifest payload.Job) string {
	name := checkName(manifest.Component, manifest.Job.Name)
	b.names[name]++
	if n := b.names[name]; n > 1 {
		return name + "-" + strconv.Itoa(n)
	}
	return name
}

// Without returns the plan without checks of these names, and what only they need.
func (p Plan) Without(names []string) Plan {
	p.Checks = slices.DeleteFunc(slices.Clone(p.Checks), func(check Check) bool { return slices.Contains(names, check.Name) })
	p.prune()
	return p
}

// prune removes the supporting objects that no check needs.
func (p *Plan) prune() {
	needed := map[reference]bool{}
	for _, check := range p.Checks {
		for _, ref := range check.needs {
			needed[ref] = true
		}
	}
	var kept []payload.Object
	for _, object := range p.Supporting {
		if object != nil && needed[referenceTo(object)] {
			kept = append(kept, object)
		}
	}
	p.Supporting = kept
}

func referenceTo(object payload.Object) reference {
	return reference{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}
