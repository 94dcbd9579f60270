package migration

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// object has the fields of any of the resources by which a migration shows.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ManagementState string         `json:"managementState"`
		Migration       *networkChange `json:"migration"`
		Storage         map[string]any `json:"storage"`
	} `json:"spec"`
	Status struct {
		Conditions []condition    `json:"conditions"`
		Migration  *networkChange `json:"migration"`
		Storage    map[string]any `json:"storage"`
		// NodeStatuses are the revisions of static pods (StaticPodOperatorStatus of operator.openshift.io).
		NodeStatuses []struct {
			NodeName                 string   `json:"nodeName"`
			TargetRevision           int32    `json:"targetRevision"`
			LastFailedRevision       int32    `json:"lastFailedRevision"`
			LastFailedReason         string   `json:"lastFailedReason"`
			LastFailedRevisionErrors []string `json:"lastFailedRevisionErrors"`
		} `json:"nodeStatuses"`
	} `json:"status"`
}

type networkChange struct {
	Mode        string         `json:"mode"`
	NetworkType string         `json:"networkType"`
	MTU         map[string]any `json:"mtu"`
}

// describe describes a migration in a field; empty where the field is not set, or has nothing.
func (c *networkChange) describe(field string) string {
	if c == nil {
		return ""
	}
	var parts []string
	if c.NetworkType != "" {
		parts = append(parts, "networkType "+words.External(c.NetworkType))
	}
	if c.Mode != "" {
		parts = append(parts, "mode "+words.External(c.Mode))
	}
	if len(c.MTU) > 0 {
		parts = append(parts, "mtu")
	}
	if len(parts) == 0 {
		return ""
	}
	return field + " has " + strings.Join(parts, ", ")
}

// condition is one of an operator, or of an object of config.openshift.io.
type condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

func (c condition) describe() string {
	return c.Type + " is " + words.Condition(c.Status, words.External(c.Reason), words.Line(c.Message, maxStated))
}

// condition returns a condition; false for none.
func (o *object) condition(kind string) (condition, bool) {
	for _, each := range o.Status.Conditions {
		if each.Type == kind {
			return each, true
		}
	}
	return condition{}, false
}

// failures state which nodes cannot be moved to the revision that they are to have: the installer of that revision failed.
func (o *object) failures() []string {
	var failures []string
	for _, node := range o.Status.NodeStatuses {
		if node.TargetRevision != 0 && node.LastFailedRevision == node.TargetRevision {
			failures = append(failures, fmt.Sprintf("revision %d failed on %s%s: %s", node.TargetRevision, words.External(node.NodeName),
				words.Aside(words.External(node.LastFailedReason)), words.Line(strings.Join(node.LastFailedRevisionErrors, "; "), maxStated)))
		}
	}
	return failures
}

func (o *object) identity() finding.Object {
	return finding.Object{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}
}

// source is a resource of which the cluster has one object, or a list.
type source struct {
	schema.GroupVersionResource

	// name is the one object; empty for all.
	name string
}

func sources() []source {
	const cluster = "cluster"
	operator := func(resource string) source {
		return source{schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: resource}, cluster}
	}
	return []source{
		{configv1.GroupVersion.WithResource("networks"), ""}, // as the gate NetworkType lists them
		operator("networks"), operator("kubeapiservers"), operator("openshiftapiservers"), operator("authentications"), operator("etcds"),
		operator("kubestorageversionmigrators"),
		{schema.GroupVersionResource{Group: "imageregistry.operator.openshift.io", Version: "v1", Resource: "configs"}, cluster},
		{schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}, ""},
	}
}

// resource is the resource as in a command line.
func (s source) resource() string { return s.GroupResource().String() }

func (s source) request() access.Request {
	if s.name == "" {
		return check.List(s.Group, s.Resource)
	}
	return check.Get(s.Group, s.Resource, "", s.name)
}

func (s source) read(ctx context.Context, cluster *snapshot.Cluster) ([]object, error) {
	switch {
	case s.Group == configv1.GroupName:
		return networks(ctx, cluster)
	case s.name == "":
		return snapshot.List[object](ctx, cluster, s.GroupVersionResource)
	}
	found, err := snapshot.Object[object](ctx, cluster, s.GroupVersionResource, s.name)
	if err != nil {
		return nil, err
	}
	return []object{*found}, nil
}

// networks of config.openshift.io, which other checks read as well.
func networks(ctx context.Context, cluster *snapshot.Cluster) ([]object, error) {
	found, err := snapshot.List[configv1.Network](ctx, cluster, configv1.GroupVersion.WithResource("networks"))
	var all []object
	for _, each := range found {
		of := object{TypeMeta: metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Network"}, ObjectMeta: each.ObjectMeta}
		for _, c := range each.Status.Conditions {
			of.Status.Conditions = append(of.Status.Conditions, condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
		if change := each.Status.Migration; change != nil {
			of.Status.Migration = &networkChange{NetworkType: change.NetworkType}
			if change.MTU != nil {
				of.Status.Migration.MTU = map[string]any{"mtu": change.MTU}
			}
		}
		all = append(all, of)
	}
	return all, err
}
