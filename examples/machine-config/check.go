package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxNamed is the maximum number of machine configs in a message.
const maxNamed = 10

// ignitionVersion fails for Ignition 2 configs that a pool uses, and warns of unused
// ones.
func ignitionVersion(ctx context.Context, t *preflight.T) error {
	client, err := connect()
	if err != nil {
		return err
	}
	pools, err := poolsByConfig(ctx, client)
	if err != nil {
		return err
	}

	var used, leftover, unclear []string
	err = eachMachineConfig(ctx, client, func(mc *unstructured.Unstructured) {
		name := mc.GetName()
		version, ok := ignitionOf(mc)
		switch {
		case !ok || strings.HasPrefix(version, "3."):
			return
		case !strings.HasPrefix(version, "2."):
			unclear = append(unclear, fmt.Sprintf("%s (%.20q)", name, version))
		case pools[name] != "":
			used = append(used, fmt.Sprintf("%s (%.20s, pool %s)", name, version, pools[name]))
		default:
			leftover = append(leftover, name)
		}
		if len(used)+len(leftover)+len(unclear) <= maxNamed {
			t.Object(preflight.Object{APIVersion: mc.GetAPIVersion(), Kind: mc.GetKind(), Name: name})
		}
	})
	if err != nil {
		return err
	}

	report(t, used, leftover)
	if len(unclear) > 0 {
		return fmt.Errorf("spec.config.ignition.version is neither 2.y.z nor 3.y.z in MachineConfig %s", some(unclear))
	}
	return nil
}

func report(t *preflight.T, used, leftover []string) {
	if len(used)+len(leftover) > 0 {
		t.Reason("Ignition2")
	}
	if len(used) > 0 {
		t.Failf("the target does not support Ignition 2, but nodes use MachineConfig %s", some(used))
		t.Remedyf("Convert each of them to Ignition 3 and apply it under the same name (rendered configs are updated automatically), " +
			"then wait for the nodes.")
		t.Commandf("oc wait machineconfigpool --all --for=condition=Updated --timeout=1h")
	}
	if len(leftover) > 0 {
		t.Warnf("no pool uses MachineConfig %s with Ignition 2, and the target does not support it", some(leftover))
		t.Remedyf("Delete the machine configs that no pool uses.")
		t.Commandf("oc delete machineconfig %s", strings.Join(leftover[:min(maxNamed, len(leftover))], " "))
	}
}

// some returns the first names and the number of the others.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
