package snapshot

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MachineSets are all MachineSets, sorted by namespace and name, without the templates
// of their machines.
func (c *Cluster) MachineSets(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
	return once(ctx, c, "machineSets", func(ctx context.Context) ([]machinev1beta1.MachineSet, error) {
		resource := machinev1beta1.GroupVersion.WithResource("machinesets")
		return listAs(ctx, c.api.Dynamic, resource, func(set *machinev1beta1.MachineSet) {
			set.Spec.Template = machinev1beta1.MachineTemplateSpec{}
		})
	})
}

// MachineHealthChecks are all MachineHealthChecks, sorted by namespace and name.
func (c *Cluster) MachineHealthChecks(ctx context.Context) ([]machinev1beta1.MachineHealthCheck, error) {
	return List[machinev1beta1.MachineHealthCheck](ctx, c, machinev1beta1.GroupVersion.WithResource("machinehealthchecks"))
}

// CertificateSigningRequests are all CertificateSigningRequests, sorted by name, without
// the requests and the certificates.
func (c *Cluster) CertificateSigningRequests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	return once(ctx, c, "certificateSigningRequests", func(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.CertificatesV1().CertificateSigningRequests().List(ctx, options)
		}, func(request *certificatesv1.CertificateSigningRequest) {
			request.Spec.Request, request.Spec.Extra, request.Status.Certificate = nil, nil, nil
		})
	})
}

// NodeConfig is the configuration of all nodes: Node "cluster" of config.openshift.io.
func (c *Cluster) NodeConfig(ctx context.Context) (*configv1.Node, error) {
	return once(ctx, c, "nodeConfig", func(ctx context.Context) (*configv1.Node, error) {
		return c.api.OpenShift.ConfigV1().Nodes().Get(ctx, "cluster", metav1.GetOptions{})
	})
}

// MachineConfiguration is the configuration of the machine-config-operator: MachineConfiguration
// "cluster" of operator.openshift.io.
func (c *Cluster) MachineConfiguration(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
	return once(ctx, c, "machineConfiguration", func(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
		found, err := c.api.Dynamic.Resource(operatorv1.GroupVersion.WithResource("machineconfigurations")).Get(ctx, "cluster", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		configuration := &operatorv1.MachineConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, configuration); err != nil {
			return nil, fmt.Errorf("MachineConfiguration cluster cannot be decoded: %w", err)
		}
		return configuration, nil
	})
}
