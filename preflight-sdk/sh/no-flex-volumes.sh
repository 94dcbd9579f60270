#!/bin/sh
# Reports volumes that use flexVolume, which the target release drops.
. "$(dirname "$0")/preflight.sh"

no_flex_volumes() {
	preflight_url https://kubernetes.io/docs/concepts/storage/volumes/#deprecated-flexvolume
	# A command that fails ends the check as Unknown.
	volumes=$(oc get persistentvolumes -o jsonpath='{range .items[?(@.spec.flexVolume)]}{.metadata.name}{"\n"}{end}')
	if [ -z "$volumes" ]; then
		preflight_pass "no volume uses flexVolume"
		return
	fi
	for volume in $volumes; do
		preflight_fail "volume $volume uses flexVolume, which $PREFLIGHT_TARGET_VERSION drops" \
			"Move it to CSI: oc describe persistentvolume $volume" FlexVolumeInUse
		preflight_object v1 PersistentVolume '' "$volume"
	done
}

preflight_main NoFlexVolumes no_flex_volumes
