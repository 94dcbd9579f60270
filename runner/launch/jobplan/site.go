package jobplan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

var reasonSiteCollision = finding.NewReason("SiteCollision", finding.Explanation{
	Meaning: "Reported for a check of the site that has the name, or an object with the name, of one of the release. " +
		"It is not run: it would hide or replace that of the release.",
	Cause: "The manifests of the site and of the release name the same object, or the release has a component that " +
		"is named \"site\".",
	Remedy: "Rename the object in the manifest of the site.",
})

// SiteComponent is the component of the checks of the site: the names of the checks start with "Site.".
const SiteComponent = "site"

// WithSite returns the draft with the checks of the site after those of the release. Both
// resolve references among their own objects only. A check of the site is Refused, as
// inconclusive, if it violates the policy for manifests, or if an object that it creates
// has the name of one that the release contains or refers to.
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
	return inconclusive(finding.Unknown(reasonSiteCollision, "the check of %s is not run: %s", check.File, cause).
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

// collision is why a check of the site cannot run beside those of the release; empty if it can.
func (t takenNames) collision(check Check, site catalog) string {
	if t.component != "" {
		return fmt.Sprintf("the release has checks with names that start with %q (%s)", check.Prefix()+".", t.component)
	}
	for _, ref := range append([]inventory.Reference{inventory.Refer(inventory.JobKind, check.Job.Namespace, check.Job.Name)}, check.Needs...) {
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
