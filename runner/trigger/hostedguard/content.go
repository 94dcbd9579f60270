package hostedguard

import (
	_ "embed" // the manifests
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

//go:embed admission.yaml
var admissionManifests string

const (
	// maxReleases bounds the past releases of a hosted cluster to which a NodePool may be taken back.
	maxReleases = 5
	// maxVersion bounds the text of a version, in bytes.
	maxVersion = 32
)

// content is what the controller writes into the variables of the policies. The keys are hosted
// clusters, as NAMESPACE/NAME, and then digests.
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
