package workload

import corev1 "k8s.io/api/core/v1"

// unsetInVolume leaves an emptyDir without members as it is: it is pruned, and a volume
// without any source is one.
func unsetInVolume(v *corev1.VolumeSource) {
	if v.HostPath != nil {
		unsetPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		unsetPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		unsetPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		unsetPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		unsetInDownwardAPI(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		unsetInProjected(v.Projected)
	}
	if v.Image != nil {
		unset(&v.Image.PullPolicy, standardPullPolicy(v.Image.Reference))
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		unsetPointer(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
	unsetInNetworkVolume(v)
}

func unsetInProjected(p *corev1.ProjectedVolumeSource) {
	unsetPointer(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			unsetInDownwardAPI(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			unsetPointer(&t.ExpirationSeconds, 3600)
		}
	}
}

func unsetInDownwardAPI(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		unsetInFieldRef(files[i].FieldRef)
	}
}

func unsetInNetworkVolume(v *corev1.VolumeSource) {
	if d := v.AzureDisk; d != nil {
		unsetPointer(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		unsetPointer(&d.Kind, corev1.AzureSharedBlobDisk)
		unsetPointer(&d.FSType, "ext4")
		unsetPointer(&d.ReadOnly, false)
	}
	if v.ISCSI != nil {
		unset(&v.ISCSI.ISCSIInterface, "default")
	}
	if r := v.RBD; r != nil {
		unset(&r.RBDPool, "rbd")
		unset(&r.RadosUser, "admin")
		unset(&r.Keyring, "/etc/ceph/keyring")
	}
	if s := v.ScaleIO; s != nil {
		unset(&s.StorageMode, "ThinProvisioned")
		unset(&s.FSType, "xfs")
	}
}
