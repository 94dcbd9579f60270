package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonCapabilityDisabled             finding.Reason = "CapabilityDisabled"
	ReasonInvalidMaxOpenShiftVersion     finding.Reason = "InvalidMaxOpenShiftVersion"
	ReasonIncompatibleOperatorsInstalled finding.Reason = "IncompatibleOperatorsInstalled"
	ReasonOperatorsCompatible            finding.Reason = "OperatorsCompatible"
)

const (
	olmGroup = "operators.coreos.com"
	// propertiesAnnotation has the properties of an installed operator's bundle.
	propertiesAnnotation = "operatorframework.io/properties"
	maxOpenShiftProperty = "olm.maxOpenShiftVersion"
)

// IncompatibleOperators is the gate that installed operators shut which do not
// support the target: a finding IncompatibleOperator-<namespace>.<name> for each
// ClusterServiceVersion whose property olm.maxOpenShiftVersion is below it, or
// cannot be read. An operator without that property supports every release. It
// concerns updates that leave the current minor version: operators that support
// 4.18 support every 4.18.z.
//
// The rules are those of OLM (operator-lifecycle-manager
// pkg/controller/operators/openshift), but for the target instead of the next
// minor version.
func IncompatibleOperators() check.Check {
	return check.Check{
		Name: "IncompatibleOperator", Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: append(clusterVersionReads(), check.List(olmGroup, "clusterserviceversions")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			operators, err := s.Cluster.ClusterServiceVersions(ctx)
			if apierrors.IsNotFound(err) {
				return noOLM(ctx, s.Cluster)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterServiceVersions: %w", err)
			}
			return judgeInstalled(operators, s.Update), nil
		},
	}
}

// noOLM is the answer where there are no ClusterServiceVersions: OLM is an
// optional part of OpenShift.
func noOLM(ctx context.Context, cluster *snapshot.Cluster) ([]finding.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{plainKubernetes()}, nil
	}
	version, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	capabilities := version.Status.Capabilities
	if slices.Contains(capabilities.KnownCapabilities, configv1.ClusterVersionCapabilityOperatorLifecycleManager) &&
		!slices.Contains(capabilities.EnabledCapabilities, configv1.ClusterVersionCapabilityOperatorLifecycleManager) {
		return []finding.Finding{finding.Skipped(ReasonCapabilityDisabled,
			"the capability OperatorLifecycleManager is not enabled on this cluster, so it has no operators of OLM")}, nil
	}
	return apiMissing("ClusterServiceVersions", olmGroup), nil
}

func judgeInstalled(operators []metav1.PartialObjectMetadata, u update.Update) []finding.Finding {
	var findings []finding.Finding
	limited, looked := 0, 0
	for i := range operators {
		operator := &operators[i]
		if copied(operator) {
			continue
		}
		looked++
		newest, found, err := maxOpenShift(operator.Annotations[propertiesAnnotation])
		if found {
			limited++
		}
		switch {
		case err != nil:
			findings = append(findings, ofOperator(operator, finding.Unknown(ReasonInvalidMaxOpenShiftVersion,
				"operator %s in namespace %s has an invalid property %s, so nobody can tell whether it supports %s, and OLM blocks minor updates: %v", operator.Name, operator.Namespace, maxOpenShiftProperty, update.Line(u.To), err)))
		case found && later(u.To, newest):
			findings = append(findings, ofOperator(operator, finding.Fail(ReasonIncompatibleOperatorsInstalled,
				"operator %s in namespace %s supports OpenShift up to %s, which %s is beyond; this does not block updates within %s", operator.Name, operator.Namespace, update.Line(newest), update.Line(u.To), update.Line(u.From))))
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(ReasonOperatorsCompatible,
			"%d operators are installed by OLM; %d of them name the newest OpenShift that they support, and all of these support %s", looked, limited, update.Line(u.To))}
	}
	return bounded(findings)
}

// ofOperator completes a finding with what all have that are about an operator.
func ofOperator(operator *metav1.PartialObjectMetadata, f finding.Finding) finding.Finding {
	f.Name = riskName("IncompatibleOperator", operator.Namespace+"."+operator.Name)
	f.Remediation = fmt.Sprintf("Update the operator to a version that supports the target, or remove it:\n"+
		"oc -n %s get subscriptions.%s,installplans.%s,clusterserviceversions.%s", operator.Namespace, olmGroup, olmGroup, olmGroup)
	f.Objects = []preflight.Object{{
		APIVersion: olmGroup + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: operator.Namespace, Name: operator.Name,
	}}
	return f
}

// riskName makes a name that obeys ClusterVersion's rule for risks of the name
// of an object: what is neither letter, digit, dot nor dash becomes a dash.
func riskName(title, object string) string {
	return title + "-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", r) {
			return r
		}
		return '-'
	}, object)
}

// copied is true for what OLM made of another namespace's operator.
func copied(operator *metav1.PartialObjectMetadata) bool {
	_, labelled := operator.Labels["olm.copiedFrom"]
	home, ok := operator.Annotations["olm.operatorNamespace"]
	return labelled || (ok && home != operator.Namespace)
}

// later compares the minor versions of two releases. 4.23 and 5.0 have the same
// Kubernetes, and OLM takes them for the same.
func later(release, than semver.Version) bool {
	release, than = major5(release), major5(than)
	return cmp.Or(cmp.Compare(release.Major, than.Major), cmp.Compare(release.Minor, than.Minor)) > 0
}

func major5(release semver.Version) semver.Version {
	const last4 = 23
	if release.Major == 4 && release.Minor >= last4 {
		return semver.Version{Major: 5, Minor: release.Minor - last4}
	}
	return release
}

// maxOpenShift reads the newest OpenShift, X.Y, that an operator supports from
// its properties; it is false where they do not say.
func maxOpenShift(annotation string) (newest semver.Version, found bool, err error) {
	if annotation == "" {
		return semver.Version{}, false, nil
	}
	var list struct {
		Properties []struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"properties"`
	}
	if err := json.Unmarshal([]byte(annotation), &list); err != nil {
		return semver.Version{}, false, fmt.Errorf("the annotation %s is not a list of properties: %w", propertiesAnnotation, err)
	}
	var values []string
	for _, property := range list.Properties {
		if property.Type == maxOpenShiftProperty {
			values = append(values, string(property.Value))
		}
	}
	switch len(values) {
	case 0:
		return semver.Version{}, false, nil
	case 1:
		newest, err = parseMaxOpenShift(values[0])
		return newest, true, err
	}
	return semver.Version{}, true, fmt.Errorf("it is there %d times (%s), and only one is allowed", len(values), short(someOf(values, 5), 200))
}

// parseMaxOpenShift takes X.Y, whatever number of quotes is around it.
func parseMaxOpenShift(value string) (semver.Version, error) {
	text := strings.Trim(value, `"`)
	if text == "" {
		return semver.Version{}, errors.New("its value is empty")
	}
	version, err := semver.ParseTolerant(text)
	if err != nil {
		return semver.Version{}, fmt.Errorf("its value %q is not a version: %w", short(text, 200), err)
	}
	if minor := (semver.Version{Major: version.Major, Minor: version.Minor}); !version.EQ(minor) {
		return semver.Version{}, fmt.Errorf("its value %q is more than a minor version; %s would be one", short(text, 200), update.Line(minor))
	}
	return version, nil
}
