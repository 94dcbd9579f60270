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
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameIncompatibleOperator = finding.NewName("IncompatibleOperator",
		"Blocks updates to another minor or major version that an installed operator does not support: an operator that supports 4.18 "+
			"supports every 4.18.z. Each ClusterServiceVersion whose property olm.maxOpenShiftVersion is lower than the target, or "+
			"invalid, has a finding IncompatibleOperator-<namespace>.<name>. An operator without that property supports every release. "+
			"The rules are OLM's (operator-lifecycle-manager pkg/controller/operators/openshift), applied to the target instead of the "+
			"next minor version.")

	reasonIncompatibleOperatorsInstalled = finding.NewReason("IncompatibleOperatorsInstalled", finding.Explanation{
		Meaning: "An operator installed by OLM does not support the target. OLM blocks the update.",
		Cause:   "The operator's property olm.maxOpenShiftVersion is lower than the target.",
		Remedy: "Update the operator to a version that supports the target, or remove it: `oc -n NAMESPACE get " +
			"subscriptions.operators.coreos.com`.",
	})
	reasonInvalidMaxOpenShiftVersion = finding.NewReason("InvalidMaxOpenShiftVersion", finding.Explanation{
		Meaning: "The property olm.maxOpenShiftVersion of an operator is invalid. OLM then blocks updates to another minor version.",
		Cause:   "The operator's bundle has a bug.",
		Remedy: "Update the operator to a version with a valid property, or remove it: `oc -n NAMESPACE get " +
			"subscriptions.operators.coreos.com`.",
	})
	reasonOperatorsCompatible = finding.NewReason("OperatorsCompatible", finding.Explanation{
		Meaning: "All operators installed by OLM support the target.",
		Cause:   "No operator has a property olm.maxOpenShiftVersion that is lower than the target.",
	})
	reasonCapabilityDisabled = finding.NewReason("CapabilityDisabled", finding.Explanation{
		Meaning: "The cluster does not have OLM.",
		Cause:   "The capability OperatorLifecycleManager is not enabled.",
	})
)

const (
	olmGroup = "operators.coreos.com"
	// propertiesAnnotation has the properties of an installed operator's bundle.
	propertiesAnnotation = "operatorframework.io/properties"
	maxOpenShiftProperty = "olm.maxOpenShiftVersion"
	// maxProperty bounds the value of a property in a message, in bytes.
	maxProperty = 200
)

// IncompatibleOperators is the check IncompatibleOperator.
func IncompatibleOperators() check.Check {
	return check.Check{
		Name: nameIncompatibleOperator, Kind: finding.SourceGate,
		Reads: append(check.ReadsClusterVersion(), check.List(olmGroup, "clusterserviceversions")),
		Run: measure.Run(measure.ByUpgradeable, func(ctx context.Context, s check.Subject, m measure.Measure) ([]finding.Finding, error) {
			operators, err := s.Cluster.ClusterServiceVersions(ctx)
			if apierrors.IsNotFound(err) {
				return withoutOLM(ctx, s)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterServiceVersions: %w", err)
			}
			return judgeInstalled(gap.ExtentOf(ctx), operators, m), nil
		}),
	}
}

// withoutOLM is the result on a cluster without ClusterServiceVersions: OLM is an optional part of OpenShift.
func withoutOLM(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{check.PlainKubernetes("ClusterServiceVersions")}, nil
	}
	version, err := s.ClusterVersion(ctx)
	if err != nil {
		return nil, err
	}
	capabilities := version.Status.Capabilities
	if slices.Contains(capabilities.KnownCapabilities, configv1.ClusterVersionCapabilityOperatorLifecycleManager) &&
		!slices.Contains(capabilities.EnabledCapabilities, configv1.ClusterVersionCapabilityOperatorLifecycleManager) {
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonCapabilityDisabled,
			"the capability OperatorLifecycleManager is not enabled on this cluster, so OLM has installed no operators")}, nil
	}
	return []finding.Finding{check.APIMissing("ClusterServiceVersions", olmGroup)}, nil
}

func judgeInstalled(read gap.Extent, operators []metav1.PartialObjectMetadata, m measure.Measure) []finding.Finding {
	var drafts []finding.Draft
	limited, judged := 0, 0
	for i := range operators {
		operator := &operators[i]
		if copied(operator) {
			continue
		}
		judged++
		newest, found, err := maxOpenShift(operator.Annotations[propertiesAnnotation])
		if found {
			limited++
		}
		switch {
		case err != nil:
			drafts = append(drafts, finding.Draft{
				Outcome:  preflight.Unknown,
				Describe: func() finding.Finding { return invalidLimit(operator, m.Update.To, err) },
			})
		case found && later(m.Update.To, newest):
			drafts = append(drafts, finding.Draft{
				Outcome:  preflight.Fail,
				Describe: func() finding.Finding { return incompatible(operator, m, newest) },
			})
		}
	}
	if len(drafts) == 0 {
		return []finding.Finding{finding.Pass(read, reasonOperatorsCompatible,
			"OLM has installed %s; %d of them have the property %s, and all of these support %s", words.Count(judged, "operator"), limited,
			maxOpenShiftProperty, update.Line(m.Update.To))}
	}
	return finding.Bounded(drafts)
}

func invalidLimit(operator *metav1.PartialObjectMetadata, target semver.Version, err error) finding.Finding {
	return ofOperator(operator, finding.Unknown(reasonInvalidMaxOpenShiftVersion,
		"operator %s in namespace %s has an invalid property %s, so it is unknown whether it supports %s, and OLM blocks minor updates: %v",
		operator.Name, operator.Namespace, maxOpenShiftProperty, update.Line(target), err))
}

func incompatible(operator *metav1.PartialObjectMetadata, m measure.Measure, newest semver.Version) finding.Finding {
	return ofOperator(operator, finding.Fail(reasonIncompatibleOperatorsInstalled,
		"operator %s in namespace %s supports OpenShift up to %s, not %s; this does not block updates within %s",
		operator.Name, operator.Namespace, update.Line(newest), update.Line(m.Update.To), m.Within))
}

func ofOperator(operator *metav1.PartialObjectMetadata, f finding.Finding) finding.Finding {
	return f.Named(finding.NameOf(nameIncompatibleOperator, operator.Namespace+"."+operator.Name)).
		Remedy("Update the operator to a version that supports the target, or remove it.").
		Do(finding.Read("oc -n %s get subscriptions.%s,installplans.%s,clusterserviceversions.%s", operator.Namespace, olmGroup, olmGroup,
			olmGroup)).
		About(finding.Object{
			APIVersion: olmGroup + "/v1alpha1", Kind: "ClusterServiceVersion", Namespace: operator.Namespace,
			Name: operator.Name,
		})
}

// copied is true for a copy that OLM made of another namespace's operator.
func copied(operator *metav1.PartialObjectMetadata) bool {
	_, labelled := operator.Labels["olm.copiedFrom"]
	home, ok := operator.Annotations["olm.operatorNamespace"]
	return labelled || (ok && home != operator.Namespace)
}

// later compares the minor versions of two releases. 4.23 and 5.0 have the same
// Kubernetes, and OLM treats them as equal.
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

// maxOpenShift parses the newest OpenShift, X.Y, that an operator supports from
// its properties; it is false where no property limits it.
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
			values = append(values, words.Line(string(property.Value), maxProperty))
		}
	}
	switch len(values) {
	case 0:
		return semver.Version{}, false, nil
	case 1:
		newest, err = parseMaxOpenShift(values[0])
		return newest, true, err
	}
	return semver.Version{}, true, fmt.Errorf("the property occurs %d times (%s), but only one is allowed", len(values), words.List(values, 5))
}

// parseMaxOpenShift parses X.Y in any number of quotes.
func parseMaxOpenShift(value string) (semver.Version, error) {
	text := strings.Trim(value, `"`)
	if text == "" {
		return semver.Version{}, errors.New("its value is empty")
	}
	version, err := semver.ParseTolerant(text)
	if err != nil {
		return semver.Version{}, fmt.Errorf("its value %q is not a version: %w", text, err)
	}
	if minor := (semver.Version{Major: version.Major, Minor: version.Minor}); !version.EQ(minor) {
		return semver.Version{}, fmt.Errorf("its value %q is more specific than a minor version, such as %s", text, update.Line(minor))
	}
	return version, nil
}
