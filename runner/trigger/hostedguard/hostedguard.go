// Package hostedguard answers: how is HyperShift made to honor a verdict on the update of a hosted cluster?
//
// With admission policies in the management cluster, which [Switch.Apply] writes: one warns of, or denies, a change of
// the release of a HostedCluster that has no Ready verdict, and one does the same for a NodePool. HyperShift itself
// does not check a release at admission, and rejects a request only after it is stored. Every other change of the
// objects passes, and so does:
//
//   - a change back to the release that runs, or that the pool has. While HyperShift rejects a
//     request, it does not reconcile the hosted cluster;
//   - a change of a NodePool to the release that its control plane has completed. As in a
//     standalone cluster, the nodes follow the control plane, which the verdict was about;
//   - an image that the annotation hypershift.openshift.io/force-upgrade-to names, by which an
//     administrator forces HyperShift as well. It has no meaning to HyperShift on a NodePool;
//   - a change of a hosted cluster or a NodePool that has no version yet: it updates nothing.
//
// A pull spec without a digest is not allowed, because its tag can refer to another image later. Verdicts are per
// hosted cluster. Creation is not an update, and is not evaluated. The policies have no clock: without the controller,
// a verdict stays in them after it has expired.
//
// The running release is read from the status of the HostedCluster, which HyperShift copies from the guest: an
// administrator of the guest can forge it there.
package hostedguard

import (
	"context"
	_ "embed" // the manifests
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

const (
	// Name is the name of the switch.
	Name = "hostedAdmission"
	// MaxClusters bounds the hosted clusters of one Apply. Their verdicts are at most
	// [guard.MaxVerdicts] in total.
	MaxClusters = 100
)

// Cluster is a hosted cluster, with the verdicts on its updates.
type Cluster struct {
	Object   *hypershift.HostedCluster
	Verdicts []guard.Verdict
}

func (c Cluster) name() string { return c.Object.Namespace + "/" + c.Object.Name }

// Switch creates the policies in a mode, or removes them. These objects are its only state.
type Switch struct {
	objects owned.Objects
	mode    guard.Mode
	now     func() time.Time
}

// New returns a switch that warns or denies, or that is off, without a mode. It sends no request. It returns an error
// for an unknown mode.
func New(client dynamic.Interface, mode guard.Mode, now func() time.Time) (*Switch, error) {
	if mode != "" && mode != guard.Warn && mode != guard.Deny {
		return nil, fmt.Errorf("the mode %q of the admission policies is neither %s nor %s", mode, guard.Warn, guard.Deny)
	}
	return &Switch{objects: objects(client), mode: mode, now: now}, nil
}

// On reports whether the switch has a mode.
func (s *Switch) On() bool { return s.mode != "" }

// objects are in the order in which they are applied: a policy takes effect by its binding.
func objects(client dynamic.Interface) owned.Objects {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	made := owned.Objects{Switch: Name, Client: client}
	for _, kind := range []struct{ kind, resource string }{
		{"ValidatingAdmissionPolicy", "validatingadmissionpolicies"}, {"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"},
	} {
		for _, name := range Names() {
			made.All = append(made.All, owned.Object{GroupVersionResource: group.WithResource(kind.resource), Kind: kind.kind, Name: name})
		}
	}
	return made
}

// Names are the names of the policies, and of their bindings.
func Names() []string {
	return []string{"update-preflight-hostedclusters", "update-preflight-nodepools"}
}

// Apply creates the policies, or changes them to these verdicts; it removes them if the switch is off. Expired verdicts
// are omitted: call Apply again at next, when the first of the others expires, which is zero if none does. It returns
// an error for invalid verdicts, for more verdicts than the policies can have, and for a policy of another client with
// the same name, which it does not change.
func (s *Switch) Apply(ctx context.Context, clusters []Cluster) (next time.Time, err error) {
	if s.mode == "" {
		_, err := s.objects.Remove(ctx)
		return time.Time{}, err
	}
	now := s.now()
	written, err := contentOf(clusters, now)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := s.objects.Read(ctx); err != nil {
		return time.Time{}, err
	}
	contents, err := manifests(s.mode, written)
	if err != nil {
		return time.Time{}, err
	}
	return firstExpiry(clusters, now), s.objects.Apply(ctx, contents)
}

// List returns the objects of the switch that exist, in the order in which they are applied.
func (s *Switch) List(ctx context.Context) ([]preflight.Object, error) { return s.objects.List(ctx) }

// Uninstall deletes the policies, denying ones first, and returns the deleted objects. It may be repeated. The
// controller must have stopped, because it would apply them again.
func Uninstall(ctx context.Context, client dynamic.Interface) ([]preflight.Object, error) {
	return objects(client).Remove(ctx)
}

// Active is the switch, if it is on in a management cluster: its binding of the HostedClusters exists.
func Active(ctx context.Context, client dynamic.Interface) ([]guard.Effect, error) {
	effective := owned.Objects{Switch: Name, Client: client, All: []owned.Object{effective()}}
	present, err := effective.Read(ctx)
	if err != nil || present[0] == nil {
		return nil, err
	}
	effect := guard.Effect{
		Name: Name, Mode: guard.ModeOf(present[0]), WithoutController: "the last verdicts remain, even after they expire",
		Limit: "warns of the selection of each release for a HostedCluster that is not Ready, and for a NodePool before its control " +
			"plane; denies nothing",
	}
	if effect.Mode == guard.Deny {
		effect.Limit = "denies the selection of each release for a HostedCluster that is not Ready, and for a NodePool before its " +
			"control plane; the annotation hypershift.openshift.io/force-upgrade-to bypasses it"
	}
	return []guard.Effect{effect}, nil
}

// ReadNeeds is the permission of [Active], which is optional.
func ReadNeeds() access.Needs { return access.Needs{Optional: effective().Requests("get")} }

// effective is the binding by which the policy of HostedClusters takes effect.
func effective() owned.Object {
	all := objects(nil).All
	return all[len(all)-len(Names())]
}

// Needs are the permissions of [Switch.Apply] in a mode, or, without a mode, of a switch that is off.
func Needs(mode guard.Mode) access.Needs {
	if mode == "" {
		return needs("get", "delete")
	}
	return needs("get", "create", "patch")
}

// UninstallNeeds are the permissions of [Uninstall].
func UninstallNeeds() access.Needs { return needs("get", "delete") }

func needs(verbs ...string) access.Needs {
	var all access.Needs
	for _, object := range objects(nil).All {
		all.Required = append(all.Required, object.Requests(verbs...)...)
	}
	return all
}

// firstExpiry is the next time at which a verdict expires; zero for none.
func firstExpiry(clusters []Cluster, now time.Time) time.Time {
	var all []guard.Verdict
	for _, cluster := range clusters {
		all = append(all, cluster.Verdicts...)
	}
	return guard.FirstExpiry(all, now)
}

//go:embed admission.yaml
var admissionManifests string

const (
	// maxReleases bounds the past releases of a hosted cluster to which a NodePool may be taken back.
	maxReleases = 5
	// maxVersion bounds the text of a version, in bytes.
	maxVersion = 32
)

// content is written by the controller into the variables of the policies. The keys are hosted clusters, as
// NAMESPACE/NAME, and then digests.
type content struct {
	// decisions are the answers of the verdicts.
	decisions map[string]map[string]string
	// releases are the versions of the newest releases that a control plane has had.
	releases map[string]map[string]string
	// controlPlanes are the digests of the releases that the control planes have completed.
	controlPlanes map[string]string
}

// contentOf has the answers of the verdicts at that time.
func contentOf(clusters []Cluster, now time.Time) (content, error) {
	made := content{decisions: map[string]map[string]string{}, releases: map[string]map[string]string{}, controlPlanes: map[string]string{}}
	if len(clusters) > MaxClusters {
		return content{}, fmt.Errorf("%d hosted clusters are more than the %d that the admission policies can have", len(clusters), MaxClusters)
	}
	count := 0
	for _, cluster := range clusters {
		if err := guard.Check(cluster.Verdicts); err != nil {
			return content{}, fmt.Errorf("HostedCluster %s: %w", cluster.name(), err)
		}
		if count += len(cluster.Verdicts); count > guard.MaxVerdicts {
			return content{}, fmt.Errorf("the verdicts are more than the %d that the admission policies can have", guard.MaxVerdicts)
		}
		made.add(cluster, now)
	}
	return made, nil
}

func (c content) add(cluster Cluster, now time.Time) {
	decisions := map[string]string{}
	for _, verdict := range cluster.Verdicts {
		if verdict.Digest != "" && verdict.Decision != "" {
			decisions[verdict.Digest] = verdict.Answer(now)
		}
	}
	releases, completed := past(cluster.Object)
	c.decisions[cluster.name()], c.releases[cluster.name()] = decisions, releases
	if completed != "" {
		c.controlPlanes[cluster.name()] = completed
	}
}

// past are the newest releases that a control plane has had, as versions by digest, and the digest of
// the one that it has completed last; empty for none.
func past(object *hypershift.HostedCluster) (releases map[string]string, completed string) {
	releases = map[string]string{}
	if object.Status.Version == nil {
		return releases, ""
	}
	for _, entry := range object.Status.Version.History {
		digest := update.Release{Image: entry.Image}.Digest()
		if _, err := semver.Parse(entry.Version); err != nil || len(entry.Version) > maxVersion {
			continue // the history is the guest's
		}
		if digest == "" || entry.State != configv1.CompletedUpdate || len(releases) == maxReleases {
			continue
		}
		if completed == "" {
			completed = digest
		}
		releases[digest] = entry.Version
	}
	return releases, completed
}

// manifests are the objects in the order of [objects].
func manifests(mode guard.Mode, written content) ([]*unstructured.Unstructured, error) {
	contents, err := owned.Parse(strings.Split(admissionManifests, "\n---\n")...)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, each := range contents {
		if each.GetKind() == "ValidatingAdmissionPolicyBinding" {
			errs = append(errs, unstructured.SetNestedStringSlice(each.Object, []string{string(mode)}, "spec", "validationActions"))
			continue
		}
		if mode == guard.Warn { // an error of the policy must not deny anything either
			errs = append(errs, unstructured.SetNestedField(each.Object, "Ignore", "spec", "failurePolicy"))
		}
		errs = append(errs, written.set(each))
	}
	return contents, errors.Join(errs...)
}

// set writes the variables of a policy that it declares, as maps of the Common Expression Language
// (CEL). A map of strings in JSON is one.
func (c content) set(policy *unstructured.Unstructured) error {
	values := map[string]any{"verdicts": c.decisions, "releases": c.releases, "controlPlanes": c.controlPlanes}
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	errs := []error{err}
	for _, variable := range variables {
		named, _ := variable.(map[string]any)
		name, _ := named["name"].(string)
		if value, ok := values[name]; ok {
			expression, err := json.Marshal(value)
			named["expression"] = string(expression)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, unstructured.SetNestedSlice(policy.Object, variables, "spec", "variables"))...)
}
