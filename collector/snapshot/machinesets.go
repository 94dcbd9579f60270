package snapshot

import (
	"context"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
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
