package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxNamed bounds the machine configs that a message names.
const maxNamed = 10

// ignitionVersion fails for configs of Ignition 2 that a pool is made of, and
// warns of those that only lie about.
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

	judge(t, used, leftover)
	if len(unclear) > 0 {
		return fmt.Errorf("spec.config.ignition.version is neither 2.y.z nor 3.y.z in MachineConfig %s", some(unclear))
	}
	return nil
}

func judge(t *preflight.T, used, leftover []string) {
	if len(used)+len(leftover) > 0 {
		t.Reason("Ignition2")
	}
	if len(used) > 0 {
		t.Failf("the target takes no Ignition 2, but nodes are made of MachineConfig %s", some(used))
		t.Remedyf("Write each of them anew in Ignition 3 and apply it under its old name (what is rendered follows by itself), then wait for the nodes:")
		t.Remedyf("oc wait machineconfigpool --all --for=condition=Updated --timeout=1h")
	}
	if len(leftover) > 0 {
		t.Warnf("no pool uses MachineConfig %s of Ignition 2, and none could after the update", some(leftover))
		t.Remedyf("oc delete machineconfig %s", strings.Join(leftover[:min(maxNamed, len(leftover))], " "))
	}
}

// some names the first of them, and says how many more there are.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
