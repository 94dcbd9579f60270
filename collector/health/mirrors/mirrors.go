// Package mirrors answers: does the machine-config-operator (MCO) accept the mirror sets of the cluster together?
//
// MCO writes all ImageDigestMirrorSets, ImageTagMirrorSets and ImageContentSourcePolicies to one registries.conf,
// and rejects them all if two of them have different mirrorSourcePolicies for one source (pkg/controller/
// container-runtime-config, syncImageConfig). The MachineConfig 99-POOL-generated-registries of each pool then
// does not change until the update brings a new MCO, which renders no pool whose MachineConfigs come from the old
// one (pkg/controller/render, generateRenderedMachineConfig): the update waits for the pools.
//
// [Check] costs three lists. A resource that the API server does not serve has no objects, such as
// ImageDigestMirrorSets before 4.13 and ImageContentSourcePolicies after their removal. If a resource may not be
// read, or an archive does not contain it, the check is Unknown, and contradictions among the others are still
// reported.
package mirrors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameMirrorSets = finding.NewName("MirrorSets",
		"Checks for mirror sets that the machine-config-operator rejects together: each source about which ImageDigestMirrorSets, "+
			"ImageTagMirrorSets or ImageContentSourcePolicies contradict one another has a finding MirrorSets-<source>. It concerns "+
			"every update of an OpenShift cluster that is not hosted, and only warns; it is Unknown if one of these resources may not "+
			"be read.")

	reasonContradictoryMirrors = finding.NewReason("ContradictoryMirrors", finding.Explanation{
		Meaning: "Mirror sets have different policies for one source. The machine-config-operator then renders no configuration for " +
			"the pools, so the update does not reach their nodes.",
		Cause: "One object has mirrorSourcePolicy NeverContactSource and another one AllowContactingSource, which is the default " +
			"and the policy of every ImageContentSourcePolicy. It does not matter whether the mirrors are for tags or for digests.",
		Remedy: "Set the same mirrorSourcePolicy for the source in all of these objects. An unset policy means AllowContactingSource, " +
			"and an ImageContentSourcePolicy always has that policy.",
		Command: "oc edit imagedigestmirrorset,imagetagmirrorset",
	})
	reasonSourceIsMirror = finding.NewReason("ClosedSourceIsMirror", finding.Explanation{
		Meaning: "A mirror set forbids contacting a source and lists it among its mirrors. The machine-config-operator then " +
			"renders no configuration for the pools, so the update does not reach their nodes.",
		Cause:   "The mirrors of an entry with mirrorSourcePolicy NeverContactSource include its source.",
		Remedy:  "Remove the source from the mirrors of this entry, or set its mirrorSourcePolicy to AllowContactingSource.",
		Command: "oc edit imagedigestmirrorset,imagetagmirrorset",
	})
)

// maxNamed bounds the objects of one policy in a message, and the objects in a command.
const maxNamed = 5

// Check is the check MirrorSets.
func Check() check.Check {
	reads := check.ReadsTopology()
	for _, each := range kinds() {
		reads = append(reads, check.List(each.resource.Group, each.resource.Resource))
	}
	return check.Check{
		Name: nameMirrorSets, Kind: finding.SourceHealth, NotHosted: "its nodes have no MachineConfigPool",
		Reads: reads,
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			switch topology {
			case snapshot.Kubernetes:
				return []finding.Finding{check.PlainKubernetes("MachineConfigPools")}, nil
			case snapshot.HyperShift:
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
					"the control plane of this cluster is hosted, and no machine-config-operator in it renders the configuration of its nodes")}, nil
			case snapshot.SelfManaged:
			}
			found, err := read(ctx, s.Cluster)
			return found.evaluate(gap.ExtentOf(ctx), err), err
		},
	}
}

// kind is one of the resources, with its list of mirrors.
type kind struct {
	resource schema.GroupVersionResource
	name     string
	entries  func(*mirrorSet) []entry
}

func kinds() []kind {
	return []kind{
		{configv1.GroupVersion.WithResource("imagedigestmirrorsets"), "ImageDigestMirrorSet", func(s *mirrorSet) []entry {
			return s.Spec.ImageDigestMirrors
		}},
		{configv1.GroupVersion.WithResource("imagetagmirrorsets"), "ImageTagMirrorSet", func(s *mirrorSet) []entry {
			return s.Spec.ImageTagMirrors
		}},
		{operatorv1alpha1.GroupVersion.WithResource("imagecontentsourcepolicies"), "ImageContentSourcePolicy", func(s *mirrorSet) []entry {
			return s.Spec.RepositoryDigestMirrors
		}},
	}
}

// mirrorSet has the fields of any of the kinds.
type mirrorSet struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ImageDigestMirrors      []entry `json:"imageDigestMirrors"`
		ImageTagMirrors         []entry `json:"imageTagMirrors"`
		RepositoryDigestMirrors []entry `json:"repositoryDigestMirrors"`
	} `json:"spec"`
}

type entry struct {
	Source             string   `json:"source"`
	Mirrors            []string `json:"mirrors"`
	MirrorSourcePolicy string   `json:"mirrorSourcePolicy"`
}

// sets are all mirror sets of the cluster, by what they state of each source.
type sets struct {
	count   int
	sources map[string]*stated
}

// stated is the content of mirror sets for one source.
type stated struct {
	policies map[string][]finding.Object
	// mirrors are the objects that list the source among its mirrors, and forbid contacting it.
	mirrors []finding.Object
}

// read returns the mirror sets of each resource that is served and may be read. The error has every other failure.
func read(ctx context.Context, cluster *snapshot.Cluster) (sets, error) {
	all := sets{sources: map[string]*stated{}}
	var failures []error
	for _, each := range kinds() {
		found, err := snapshot.List[mirrorSet](ctx, cluster, each.resource)
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("could not read %s: %w", each.resource.GroupResource(), err))
			continue
		}
		for i := range found {
			all.add(each, &found[i])
		}
	}
	return all, errors.Join(failures...)
}

// add adds what an object states, as MCO compares it (machine-config-operator
// pkg/controller/container-runtime-config/helpers.go, validateRegistriesConfScopes): by the exact text of the source, over
// all kinds, and whether or not the entry has mirrors, although entries without are not written to registries.conf
// (runtime-utils pkg/registries/registries.go, addMirrorSet).
func (s *sets) add(of kind, set *mirrorSet) {
	s.count++
	object := finding.Object{APIVersion: of.resource.GroupVersion().String(), Kind: of.name, Name: set.Name}
	for _, each := range of.entries(set) {
		policy := cmp.Or(each.MirrorSourcePolicy, string(configv1.AllowContactingSource))
		if of.resource.Group == operatorv1alpha1.GroupName { // the API has no such field
			policy = string(configv1.AllowContactingSource)
		}
		if s.sources[each.Source] == nil {
			s.sources[each.Source] = &stated{policies: map[string][]finding.Object{}}
		}
		source := s.sources[each.Source]
		source.policies[policy] = with(source.policies[policy], object)
		if policy == string(configv1.NeverContactSource) && slices.Contains(each.Mirrors, each.Source) {
			source.mirrors = with(source.mirrors, object)
		}
	}
}

// with adds an object once: repeated mentions of one object follow one another.
func with(objects []finding.Object, object finding.Object) []finding.Object {
	if len(objects) > 0 && objects[len(objects)-1] == object {
		return objects
	}
	return append(objects, object)
}

// evaluate returns a finding for each source that MCO rejects; none if there is none and something could not be read.
func (s *sets) evaluate(extent gap.Extent, failure error) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		if source := s.sources[name]; len(source.policies) > 1 || len(source.mirrors) > 0 {
			findings = append(findings, source.describe(name))
		}
	}
	if len(findings) > 0 || failure != nil {
		return finding.Bounded(finding.Drafts(findings...))
	}
	return []finding.Finding{finding.Pass(extent, check.ReasonAsExpected,
		"no two mirror sets contradict one another; the cluster has %s", words.Count(s.count, "mirror set"))}
}

// describe is the finding about a source that MCO rejects.
func (s *stated) describe(name string) finding.Finding {
	const harm = "the machine-config-operator renders no configuration for the pools, so the update does not reach their nodes"
	source := words.External(name)
	if len(s.policies) == 1 {
		return finding.Warn(reasonSourceIsMirror, "mirrorSourcePolicy of source %q is %s in %s, although the source is among its mirrors: %s",
			source, configv1.NeverContactSource, list(s.mirrors), harm).
			Named(finding.NameOf(nameMirrorSets, name)).About(s.mirrors...).Do(edit(s.mirrors))
	}
	var texts []string
	var first []finding.Object // of each policy, so that no policy is cut off
	for _, policy := range slices.Sorted(maps.Keys(s.policies)) {
		objects := s.policies[policy]
		texts = append(texts, words.External(policy)+" in "+list(objects))
		first = append(first, objects[:min(len(objects), maxNamed)]...)
	}
	return finding.Warn(reasonContradictoryMirrors, "mirrorSourcePolicy of source %q is %s: %s", source, strings.Join(texts, ", and "), harm).
		Named(finding.NameOf(nameMirrorSets, name)).About(first...).Do(edit(first))
}

func list(objects []finding.Object) string {
	var names []string
	for _, each := range objects[:min(len(objects), maxNamed)] {
		names = append(names, fmt.Sprintf("%s %q", each.Kind, words.External(each.Name)))
	}
	return words.ListOf(names, len(objects))
}

// edit is the command to edit objects, each once.
func edit(objects []finding.Object) finding.Action {
	var names []string
	for _, each := range objects {
		if name := strings.ToLower(each.Kind) + "/" + each.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return finding.Change("oc edit %s", names[:min(len(names), 2*maxNamed)])
}
