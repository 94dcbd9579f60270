package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/openshift/update-preflight/collector/words"
)

// Origin is the origin of the acceptances in ClusterVersion.
const Origin = "spec.desiredUpdate.acceptRisks"

// Kept is the result of a Change.
type Kept struct {
	// Risks are the names, in the order of ClusterVersion.
	Risks []string
	// Changed is false when nothing had to be written.
	Changed bool
	// Known are the risks of the updates that ClusterVersion lists, by name.
	Known []string
}

// NotKeptError is the error of a cluster that does not support accepted risks. Nothing was written.
type NotKeptError struct{ Cause string }

// Error implements error.
func (e *NotKeptError) Error() string {
	return fmt.Sprintf("ClusterVersion \"version\" does not support %s: %s; nothing was changed. "+
		"Accept the risks for each preflight instead, by name or in an acceptance file", Origin, e.Cause)
}

// Write changes which risks ClusterVersion accepts, and nothing else in spec.desiredUpdate, and verifies the
// result. It makes a dry run first: if the feature gate ClusterUpdateAcceptRisks is off, the API server silently
// drops the field, and the remaining update may be invalid for CVO. The error for such a cluster is a
// *[NotKeptError]. A conflict with another writer is retried.
func Write(ctx context.Context, client dynamic.Interface, change Change) (Kept, error) {
	if len(change.Add) > 0 {
		if err := checkTopology(ctx, client); err != nil {
			return Kept{}, err
		}
	}
	versions := client.Resource(configv1.GroupVersion.WithResource("clusterversions"))
	var kept Kept
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var err error
		kept, err = write(ctx, versions, change)
		return err
	})
	if apierrors.IsConflict(err) {
		return kept, fmt.Errorf("another client changed ClusterVersion \"version\" during every attempt to write it: %w", err)
	}
	return kept, err
}

// checkTopology returns an error for hosted clusters, where CVO refuses an update with
// accepted risks (cluster-version-operator pkg/cvo/cvo.go).
func checkTopology(ctx context.Context, client dynamic.Interface) error {
	infrastructures := client.Resource(configv1.GroupVersion.WithResource("infrastructures"))
	infrastructure, err := infrastructures.Get(ctx, "cluster", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("could not read Infrastructure \"cluster\": %w", err)
	}
	topology, _, err := unstructured.NestedString(infrastructure.Object, "status", "controlPlaneTopology")
	if err != nil {
		return fmt.Errorf("could not read Infrastructure \"cluster\": %w", err)
	}
	if topology == string(configv1.ExternalTopologyMode) {
		return &NotKeptError{Cause: "the cluster-version operator of a hosted cluster (HyperShift) rejects it"}
	}
	return nil
}

func write(ctx context.Context, versions dynamic.ResourceInterface, change Change) (Kept, error) {
	found, err := versions.Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return Kept{}, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	present, err := acceptedIn(found)
	if err != nil {
		return Kept{}, err
	}
	known := knownRisks(found)
	wanted, err := change.apply(present)
	if err != nil || slices.Equal(wanted, present) {
		return Kept{Risks: present, Known: known}, err
	}
	patch, err := patchFor(found, wanted)
	if err != nil {
		return Kept{}, err
	}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, change.DryRun} {
		options := metav1.PatchOptions{DryRun: dryRun}
		written, err := versions.Patch(ctx, "version", types.MergePatchType, patch, options)
		if err != nil {
			return Kept{}, fmt.Errorf("could not write %s of ClusterVersion \"version\": %w", Origin, err)
		}
		if err := compare(written, wanted); err != nil {
			return Kept{}, err
		}
	}
	return Kept{Risks: wanted, Changed: true, Known: known}, nil
}

// knownRisks are the names of the risks in status.conditionalUpdates and
// status.conditionalUpdateRisks. What cannot be read has none: the names only support a
// warning.
func knownRisks(clusterVersion *unstructured.Unstructured) []string {
	var status struct {
		Status configv1.ClusterVersionStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clusterVersion.Object, &status); err != nil {
		return nil
	}
	var names []string
	for _, update := range status.Status.ConditionalUpdates {
		for _, risk := range update.Risks {
			names = append(names, risk.Name)
		}
	}
	for _, risk := range status.Status.ConditionalUpdateRisks {
		names = append(names, risk.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// acceptedIn are the names in ClusterVersion. The update is read untyped, so that
// fields unknown to this program are kept.
func acceptedIn(clusterVersion *unstructured.Unstructured) ([]string, error) {
	risks, _, err := unstructured.NestedSlice(clusterVersion.Object, "spec", "desiredUpdate", "acceptRisks")
	if err != nil {
		return nil, fmt.Errorf("could not read %s of ClusterVersion \"version\": %w", Origin, err)
	}
	names := []string{}
	for _, risk := range risks {
		fields, _ := risk.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok {
			return nil, fmt.Errorf("could not read %s of ClusterVersion \"version\": an entry has no name", Origin)
		}
		names = append(names, name)
	}
	return names, nil
}

// patchFor sets the risks, unless ClusterVersion is changed meanwhile. The field must
// not be an empty list, and an empty update, which is invalid for CVO, is removed with
// the last risk (cluster-version-operator lib/validation).
func patchFor(found *unstructured.Unstructured, wanted []string) ([]byte, error) {
	var desired any = map[string]any{"acceptRisks": risks(wanted)}
	if len(wanted) == 0 && isEmptyBut(found, "acceptRisks") {
		desired = nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": found.GetResourceVersion()},
		"spec":     map[string]any{"desiredUpdate": desired},
	})
}

func risks(names []string) []configv1.AcceptRisk {
	var risks []configv1.AcceptRisk
	for _, name := range names {
		risks = append(risks, configv1.AcceptRisk{Name: name})
	}
	return risks
}

// isEmptyBut reports whether the desired update has no other field.
func isEmptyBut(clusterVersion *unstructured.Unstructured, field string) bool {
	desired, _, err := unstructured.NestedMap(clusterVersion.Object, "spec", "desiredUpdate")
	if err != nil {
		return false
	}
	for key, value := range desired {
		if key != field && value != "" && value != false && value != nil {
			return false
		}
	}
	return true
}

// compare returns an error unless the API server stored the wanted risks.
func compare(written *unstructured.Unstructured, wanted []string) error {
	got, err := acceptedIn(written)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(got, wanted):
		return nil
	case len(got) == 0:
		return &NotKeptError{Cause: "the API server drops the field, because the feature gate ClusterUpdateAcceptRisks is off on this cluster"}
	}
	return fmt.Errorf("the API server stored accepted risks in ClusterVersion \"version\" that differ from the requested ones: %s",
		words.List(got, maxListed))
}

// maxRange bounds the text of a range of versions, and thereby the versions in it, in bytes.
const maxRange = 256

// rangeOfVersions is the documented syntax of semver.ParseRange, with a space around
// every comparison: that function drops words of one letter, and panics later for an
// empty side of "||".
var rangeOfVersions = regexp.MustCompile(`^` + comparisons + `( +\|\| +` + comparisons + `)*$`)

const (
	comparisons = comparison + `( +` + comparison + `)*`
	comparison  = `(>=|<=|>|<|==|=|!=|!)?([0-9]+\.x(\.x)?|[0-9]+\.[0-9]+\.x|[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-WYZa-wyz.-]+)?)`
)

// versionLike is a version or a wildcard in a range.
var versionLike = regexp.MustCompile(`[0-9][0-9A-Za-z.+-]*`)

// parseVersions returns the range, and its landmarks. An empty text means all versions, and the range is nil.
func parseVersions(text string) (semver.Range, []semver.Version, error) {
	if text == "" {
		return nil, nil, nil
	}
	if len(text) > maxRange {
		return nil, nil, fmt.Errorf("the range of versions has %d characters, and %d are the limit", len(text), maxRange)
	}
	if !rangeOfVersions.MatchString(text) {
		return nil, nil, fmt.Errorf("versions %q is not a range like \">=4.18.0 <4.19.0\"", text)
	}
	within, err := semver.ParseRange(text)
	if err != nil {
		return nil, nil, fmt.Errorf("versions %q is not a range like \">=4.18.0 <4.19.0\": %w", text, oneLine(err))
	}
	marks := landmarks(text)
	if !slices.ContainsFunc(marks, within) {
		return nil, nil, fmt.Errorf("versions %q is an empty range: it contains no version", text)
	}
	return within, marks, nil
}

// overlaps reports whether both accept the same risk for any one target of any one cluster.
func (a Acceptance) overlaps(b Acceptance) bool {
	if a.Risk != b.Risk || a.apart(b) {
		return false
	}
	shared := func(id string) bool {
		return slices.ContainsFunc(b.Clusters, func(other string) bool { return strings.EqualFold(id, other) })
	}
	if len(a.Clusters) > 0 && len(b.Clusters) > 0 && !slices.ContainsFunc(a.Clusters, shared) {
		return false
	}
	if a.versions == nil || b.versions == nil {
		return true
	}
	return slices.ContainsFunc(a.landmarks, b.versions.AND(a.versions)) || slices.ContainsFunc(b.landmarks, a.versions.AND(b.versions))
}

// landmarks are versions that include one of every nonempty range made of the bounds
// in the text. Such a range begins with the least version of all, at a bound, or right
// after one; and every version has a next one.
func landmarks(text string) []semver.Version {
	marks := []semver.Version{{Pre: []semver.PRVersion{{IsNum: true}}}}
	for _, bound := range bounds(text) {
		marks = append(marks, bound, after(bound))
	}
	return marks
}

// bounds are the versions in the text. A wildcard, as in 4.18.x, has the first version
// that it matches, and the first after it that it does not match.
func bounds(text string) []semver.Version {
	var found []semver.Version
	for _, word := range versionLike.FindAllString(text, -1) {
		if version, err := semver.Parse(word); err == nil {
			found = append(found, version)
			continue
		}
		parts := strings.Split(word, ".")
		major, err := strconv.ParseUint(parts[0], 10, 64)
		if err != nil {
			continue
		}
		found = append(found, semver.Version{Major: major}, semver.Version{Major: major + 1})
		if len(parts) < 2 {
			continue
		}
		if minor, err := strconv.ParseUint(parts[1], 10, 64); err == nil {
			found = append(found, semver.Version{Major: major, Minor: minor}, semver.Version{Major: major, Minor: minor + 1})
		}
	}
	return found
}

// after is the least version after this one: a pre-release comes before one with
// further parts, and after every release comes the first pre-release of the next
// patch.
func after(version semver.Version) semver.Version {
	first := semver.PRVersion{IsNum: true}
	if len(version.Pre) > 0 {
		version.Pre = append(slices.Clone(version.Pre), first)
		return version
	}
	version.Patch++
	version.Pre = []semver.PRVersion{first}
	return version
}
