// Package jobplan answers: which objects does a run create for the checks of a release?
//
// [New] reads the checks of a release, and rejects checks that violate the policy for manifests; [Draft.Bind] returns
// the [Plan] of one run. Both are pure.
//
// The names of all objects depend only on the release and the ID of the run. A runner that continues another's run
// therefore plans the same objects. A version of this tool that plans different objects does not adopt the objects of
// an earlier version.
//
// The pods of checks have the default priority of the cluster, so they preempt only pods of lower priority. Their
// requests for CPU and memory are not limited: a check that requests more than any node has free waits, and an
// autoscaler may add nodes for it.
package jobplan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
)

// Draft is the named checks of a release that conform to the policy for manifests. It is the same for every run.
type Draft struct {
	// Checks are in the order of the manifests in the release.
	Checks []Check
	// Refused has one finding for each Job that violates the policy.
	Refused []finding.Finding

	// catalog contains the supporting objects of the release, management the objects for the management cluster of a
	// hosted cluster, and siteCatalog the objects of the site's checks.
	catalog, management, siteCatalog catalog
	// path is the update path ("4.18.1,4.19.2"); empty if unknown.
	path string
}

// catalogOf has the supporting objects that a check may refer to.
func (d Draft) catalogOf(c Check) catalog {
	switch {
	case c.Site:
		return d.siteCatalog
	case c.Side == check.Management:
		return d.management
	}
	return d.catalog
}

// On returns the draft with the checks of one cluster of a hosted cluster. For any other cluster, all checks belong to
// [check.Guest].
func (d Draft) On(side check.Side) Draft {
	if side == check.Management {
		d = d.Without(check.Guest)
		d.catalog, d.siteCatalog = catalog{}, catalog{}
		return d
	}
	d = d.Without(check.Management)
	d.management = catalog{}
	return d
}

// Without is the draft without the checks of one cluster of a hosted cluster.
func (d Draft) Without(side check.Side) Draft {
	d.Checks = slices.DeleteFunc(slices.Clone(d.Checks), func(c Check) bool { return c.Side == side })
	return d
}

// New returns the checks of a release for a cluster at the version from. It is
// pure and deterministic. Jobs that violate the policy, or need a supporting object
// that does, are in Refused and not in Checks. All checks run in the same cluster.
func New(from string, release *payload.Release) Draft { return NewHosted(from, release, "") }

// NewHosted is like New, for a hosted cluster: the checks for its management cluster run there, in the namespace of the
// control plane instead of the namespaces of their manifests.
func NewHosted(from string, release *payload.Release, controlPlane string) Draft {
	release = placed(release, controlPlane)
	draft := Draft{catalog: newCatalog(release.Supporting, check.Guest), management: newCatalog(release.Supporting, check.Management)}
	b := builder{images: map[string]bool{}, draft: draft, names: map[string]int{}, jobs: map[placedJob]string{}}
	for _, image := range release.Images {
		b.images[image] = true
	}
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
	for _, need := range check.Needs {
		same.Supporting = append(same.Supporting, d.catalogOf(check).manifests[need].manifest.Object)
	}
	text, err := json.Marshal(same)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), true
}

type builder struct {
	images map[string]bool
	draft  Draft
	// names counts the checks of a name, jobs has the file of each Job.
	names map[string]int
	jobs  map[placedJob]string
}

// placedJob identifies a Job across both clusters of a hosted cluster.
type placedJob struct {
	side check.Side
	ref  inventory.Reference
}

// check drafts the check of one manifest. Its name is set also with violations.
func (b builder) check(manifest payload.Job) (Check, []manifestpolicy.Violation) {
	job, side := manifest.Job, check.Guest
	if manifest.Management {
		side = check.Management
	}
	drafted := Check{
		Name: b.uniqueName(manifest), Component: manifest.Component, File: manifest.File,
		Framed: job.Annotations[annotationResult] == resultFramed,
		Serial: job.Annotations[annotationSerial] == serialTrue,
		Job:    job, Side: side,
	}
	violations := manifestpolicy.Job(job, b.images)
	if side == check.Management {
		violations = append(violations, manifestpolicy.ControlPlane(job)...)
	}
	ref := placedJob{side: side, ref: inventory.Refer("Job", job.Namespace, job.Name)}
	if first, ok := b.jobs[ref]; ok {
		violations = append(violations, manifestpolicy.Violation{
			Reason: manifestpolicy.ReasonRefusedManifest, Path: "metadata.name",
			Text: "is a duplicate of the Job in " + first,
		})
	}
	b.jobs[ref] = manifest.File
	violations = located(violations, manifest.Lines)

	known := b.draft.catalogOf(drafted)
	drafted.Needs = known.closure(known.referredBy(job))
	for _, need := range drafted.Needs {
		needed := known.manifests[need]
		for _, f := range located(needed.violations, needed.manifest.Lines) {
			f.Path = fmt.Sprintf("%s (%s): %s", need, needed.manifest.File, f.Path)
			violations = append(violations, f)
		}
	}
	return drafted, violations
}

func located(violations []manifestpolicy.Violation, lines manifestdoc.Lines) []manifestpolicy.Violation {
	found := slices.Clone(violations)
	for i := range found {
		if line := lines.Of(found[i].Path); line > 0 {
			found[i].Path += fmt.Sprintf(" (line %d)", line)
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

// maxViolations bounds how many violations a message lists.
const maxViolations = 5

// rejected is the finding for a Job that violates the policy. It fails, since the check does not run.
func rejected(check Check, job *batchv1.Job, violations []manifestpolicy.Violation) finding.Finding {
	texts := make([]string, 0, maxViolations)
	for _, f := range violations[:min(maxViolations, len(violations))] {
		texts = append(texts, f.String())
	}
	if more := len(violations) - maxViolations; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return finding.Fail(violations[0].Reason, "Job %q of %s violates the policy for checks: %s", job.Name, check.File,
		strings.Join(texts, "; ")).
		Named(check.Name).
		From(finding.SourceJob).
		Remedy("Report it to the owners of component %q, who must fix the release. To update without this check, "+
			"accept the finding.",
			check.Component).
		Do(finding.Accept(check.Name)).
		About(finding.Object{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name})
}

var reasonSiteCollision = finding.NewReason("SiteCollision", finding.Explanation{
	Meaning: "A check of the site, or one of its objects, has the same name as one of the release. The site's check " +
		"does not run, because it would hide or replace the one in the release.",
	Cause: "The manifests of the site and of the release define the same object, or the release has a component " +
		"named \"site\".",
	Remedy: "Rename the object in the manifest of the site.",
})

// SiteComponent is the component of the checks of the site: the names of the checks start with "Site.".
const SiteComponent = "site"

// WithSite returns the draft with the checks of the site after the checks of the release. Both resolve references among
// their own objects only. A check of the site is Refused, as inconclusive, if it violates the policy for manifests, or
// if an object that it creates has the name of an object that the release contains or refers to.
func (d Draft) WithSite(site Draft) Draft {
	taken := d.taken()
	d.Checks, d.Refused = slices.Clip(d.Checks), slices.Clip(d.Refused)
	d.siteCatalog = catalog{manifests: map[inventory.Reference]*supportingManifest{}}
	for _, f := range site.Refused {
		d.Refused = append(d.Refused, inconclusive(f))
	}
	for _, check := range site.Checks {
		if cause := taken.collision(check, site.catalog); cause != "" {
			d.Refused = append(d.Refused, collides(check, cause))
			continue
		}
		if above := manifestpolicy.OfSite(check.Side); len(above) > 0 {
			d.Refused = append(d.Refused, inconclusive(rejected(check, check.Job, above)))
			continue
		}
		check.Site = true
		for _, need := range check.Needs {
			d.siteCatalog.manifests[need] = site.catalog.manifests[need]
		}
		d.Checks = append(d.Checks, check)
	}
	return d
}

// inconclusive is the finding about a check of the site that violates the policy.
func inconclusive(f finding.Finding) finding.Finding {
	f.Outcome, f.Actions = preflight.Unknown, nil
	return f.Remedy("Fix the manifest, or run the preflight without it. To update without this check, accept the finding.").
		Do(finding.Retry(""), finding.Accept(f.Name))
}

func collides(check Check, cause string) finding.Finding {
	return inconclusive(finding.Unknown(reasonSiteCollision, "the check of %s does not run: %s", check.File, cause).
		Named(check.Name).From(finding.SourceJob).
		About(finding.Object{APIVersion: "batch/v1", Kind: inventory.JobKind, Namespace: check.Job.Namespace, Name: check.Job.Name}))
}

// takenNames are the objects that the checks of a release contain, or refer to in the
// cluster, with the files of their manifests.
type takenNames struct {
	objects   map[inventory.Reference]string
	contained map[inventory.Reference]bool
	// component is a file with a check of a component that is named as the site is; empty for none.
	component string
}

// taken includes the checks that violate the policy, which may be fixed in the next release.
func (d Draft) taken() takenNames {
	t := takenNames{objects: map[inventory.Reference]string{}, contained: map[inventory.Reference]bool{}}
	for _, ref := range d.catalog.references() {
		binding := d.catalog.manifests[ref].manifest
		if _, role := BindingOf(binding.Object); role.Name != "" {
			t.objects[roleOf(role, ref.Namespace)] = binding.File
		}
	}
	for _, check := range d.Checks {
		t.objects[inventory.Refer(inventory.JobKind, check.Job.Namespace, check.Job.Name)] = check.File
		for _, ref := range append(referencesOf(check.Job), check.Account()) {
			t.objects[ref] = check.File
		}
		if strings.EqualFold(check.Prefix(), SiteComponent) {
			t.component = check.File
		}
	}
	for _, f := range d.Refused {
		for _, object := range f.Objects {
			t.objects[inventory.Refer(object.Kind, object.Namespace, object.Name)] = "a manifest of the release"
		}
		if prefix, _, _ := strings.Cut(f.Name, "."); strings.EqualFold(prefix, SiteComponent) {
			t.component = "a manifest of the release"
		}
	}
	for _, ref := range d.catalog.references() {
		t.objects[ref], t.contained[ref] = d.catalog.manifests[ref].manifest.File, true
	}
	return t
}

// collision is why a check of the site cannot run beside the checks of the release; empty if it can.
func (t takenNames) collision(check Check, site catalog) string {
	if t.component != "" {
		return fmt.Sprintf("the release has checks with names that start with %q (%s)", check.Prefix()+".", t.component)
	}
	for _, ref := range append([]inventory.Reference{inventory.Refer(inventory.JobKind, check.Job.Namespace, check.Job.Name)},
		check.Needs...) {
		if file, found := t.objects[ref]; found {
			return fmt.Sprintf("the release uses the same name: %s of %s", ref, file)
		}
	}
	// A temporary copy of that object would have the name of the release's.
	for _, ref := range append(referencesOf(check.Job), check.Account()) {
		if site.manifests[ref] == nil && t.contained[ref] {
			return fmt.Sprintf("it refers to %s, which the release replaces temporarily (%s)", ref, t.objects[ref])
		}
	}
	return ""
}

// placed is a release for the hosted cluster whose control plane is in this namespace of its management cluster:
// the objects for that cluster are there, with the ServiceAccounts that they bind, whatever namespaces
// their manifests name. Without a namespace the cluster is its own management cluster, and no object is for
// another.
func placed(release *payload.Release, controlPlane string) *payload.Release {
	copied := *release
	copied.Jobs, copied.Supporting = nil, nil
	for _, each := range release.Jobs {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Job = each.Job.DeepCopy()
			each.Job.Namespace = controlPlane
		}
		copied.Jobs = append(copied.Jobs, each)
	}
	for _, each := range release.Supporting {
		if each.Management = each.Management && controlPlane != ""; each.Management {
			each.Object = moved(each.Object, controlPlane)
		}
		copied.Supporting = append(copied.Supporting, each)
	}
	return &copied
}

// moved is a supporting object in a namespace, with the ServiceAccounts that it binds.
func moved(object payload.Object, namespace string) payload.Object {
	copied, ok := object.DeepCopyObject().(payload.Object)
	if !ok {
		return object
	}
	if object.GetNamespace() != "" {
		copied.SetNamespace(namespace)
	}
	var subjects []rbacv1.Subject
	switch binding := copied.(type) {
	case *rbacv1.RoleBinding:
		subjects = binding.Subjects
	case *rbacv1.ClusterRoleBinding:
		subjects = binding.Subjects
	}
	for i := range subjects {
		if subjects[i].Kind == rbacv1.ServiceAccountKind {
			subjects[i].Namespace = namespace
		}
	}
	return copied
}
