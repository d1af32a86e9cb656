#include "registry/core/hub.h"

namespace keelson::registry::core {
namespace {

constexpr std::string_view kTable = R"(
PodTemplateSpec -=metadata:~ObjectMeta Spec:PodSpec
EphemeralContainer Name:string Image:string Command:[]string Args:[]string WorkingDir:string Ports:[]ContainerPort EnvFrom:[]EnvFromSource
    Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*string
    RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:string TerminationMessagePolicy:string
    ImagePullPolicy:string SecurityContext:*SecurityContext Stdin:bool StdinOnce:bool TTY=tty:bool TargetContainerName:string
PersistentVolumeSource GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource
    AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource HostPath:*HostPathVolumeSource
    Glusterfs:*GlusterfsPersistentVolumeSource NFS=nfs:*NFSVolumeSource RBD=rbd:*RBDPersistentVolumeSource Quobyte:*QuobyteVolumeSource
    ISCSI=iscsi:*ISCSIPersistentVolumeSource FlexVolume:*FlexPersistentVolumeSource Cinder:*CinderPersistentVolumeSource
    CephFS=cephfs:*CephFSPersistentVolumeSource FC=fc:*FCVolumeSource Flocker:*FlockerVolumeSource
    AzureFile:*AzureFilePersistentVolumeSource VsphereVolume:*VsphereVirtualDiskVolumeSource AzureDisk:*AzureDiskVolumeSource
    PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO:*ScaleIOPersistentVolumeSource
    Local:*LocalVolumeSource StorageOS=storageos:*StorageOSPersistentVolumeSource CSI=csi:*CSIPersistentVolumeSource
PersistentVolumeSpec Capacity:{}quantity +PersistentVolumeSource AccessModes:[]string
    ClaimRef:*ObjectReference PersistentVolumeReclaimPolicy:string StorageClassName:string MountOptions:[]string VolumeMode:*string
    NodeAffinity:*VolumeNodeAffinity VolumeAttributesClassName:*string
PodDisruptionBudgetSpec MinAvailable:*intorstring Selector:*~LabelSelector MaxUnavailable:*intorstring
    UnhealthyPodEvictionPolicy:*string
VolumeAttachmentSpec Attacher:string Source:VolumeAttachmentSource NodeName:string
VolumeAttachmentSource PersistentVolumeName:*string InlineVolumeSpec:*PersistentVolumeSpec
PersistentVolumeClaimSpec AccessModes:[]string Selector:*~LabelSelector Resources:VolumeResourceRequirements VolumeName:string
    StorageClassName:*string VolumeMode:*string DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference
    VolumeAttributesClassName:*string
VolumeNodeAffinity Required:*NodeSelector
ServicePort Name:string Protocol:string AppProtocol:*string Port:int TargetPort:intorstring NodePort:int
Taint Key:string Value:string Effect:string TimeAdded:*time
PodIP IP=ip:string
HostIP IP=ip:string
NodeConfigSource ConfigMap:*ConfigMapNodeConfigSource
ScopeSelector MatchExpressions:[]ScopedResourceSelectorRequirement
NodeAddress Type:string Address:string
DeploymentStrategy Type:string RollingUpdate:*RollingUpdateDeployment
DaemonSetUpdateStrategy Type:string RollingUpdate:*RollingUpdateDaemonSet
StatefulSetUpdateStrategy Type:string RollingUpdate:*RollingUpdateStatefulSetStrategy
PodFailurePolicy Rules:[]PodFailurePolicyRule
SuccessPolicy Rules:[]SuccessPolicyRule
PodSpec Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]EphemeralContainer RestartPolicy:string
    TerminationGracePeriodSeconds:*int ActiveDeadlineSeconds:*int DNSPolicy=dnsPolicy:string NodeSelector:{}string
    ServiceAccountName:string AutomountServiceAccountToken:*bool NodeName:string SecurityContext:*PodSecurityContext
    ImagePullSecrets:[]LocalObjectReference Hostname:string Subdomain:string SetHostnameAsFQDN:*bool Affinity:*Affinity
    SchedulerName:string Tolerations:[]Toleration HostAliases:[]HostAlias PriorityClassName:string Priority:*int PreemptionPolicy:*string
    DNSConfig=dnsConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName:*string Overhead:{}quantity
    EnableServiceLinks:*bool TopologySpreadConstraints:[]TopologySpreadConstraint OS=os:*PodOS SchedulingGates:[]PodSchedulingGate
    ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements HostnameOverride:*string SchedulingGroup:*PodSchedulingGroup
ContainerPort Name:string HostPort:int ContainerPort:int Protocol:string HostIP:string
EnvFromSource Prefix:string ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
EnvVar Name:string Value:string ValueFrom:*EnvVarSource
ResourceRequirements Limits:{}quantity Requests:{}quantity Claims:[]ResourceClaim
ContainerResizePolicy ResourceName:string RestartPolicy:string
ContainerRestartRule Action:string ExitCodes:*ContainerRestartRuleOnExitCodes
VolumeMount Name:string ReadOnly:bool RecursiveReadOnly:*string MountPath:string SubPath:string MountPropagation:*string
    SubPathExpr:string
VolumeDevice Name:string DevicePath:string
Probe Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction GRPC=grpc:*GRPCAction InitialDelaySeconds:int
    TimeoutSeconds:int PeriodSeconds:int SuccessThreshold:int FailureThreshold:int TerminationGracePeriodSeconds:*int
Lifecycle PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal:*string
SecurityContext Capabilities:*Capabilities Privileged:*bool SELinuxOptions=seLinuxOptions:*SELinuxOptions
    WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*int RunAsGroup:*int RunAsNonRoot:*bool ReadOnlyRootFilesystem:*bool
    AllowPrivilegeEscalation:*bool ProcMount:*string SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
GCEPersistentDiskVolumeSource PDName=pdName:string FSType=fsType:string Partition:int ReadOnly:bool
AWSElasticBlockStoreVolumeSource VolumeID:string FSType=fsType:string Partition:int ReadOnly:bool
HostPathVolumeSource Path:string Type:*string
GlusterfsPersistentVolumeSource EndpointsName=endpoints:string Path:string ReadOnly:bool EndpointsNamespace:*string
NFSVolumeSource Server:string Path:string ReadOnly:bool
RBDPersistentVolumeSource CephMonitors=monitors:[]string RBDImage=image:string FSType=fsType:string RBDPool=pool:string
    RadosUser=user:string Keyring:string SecretRef:*SecretReference ReadOnly:bool
QuobyteVolumeSource Registry:string Volume:string ReadOnly:bool User:string Group:string Tenant:string
ISCSIPersistentVolumeSource TargetPortal:string IQN=iqn:string Lun:int ISCSIInterface=iscsiInterface:string FSType=fsType:string
    ReadOnly:bool Portals:[]string DiscoveryCHAPAuth=chapAuthDiscovery:bool SessionCHAPAuth=chapAuthSession:bool
    SecretRef:*SecretReference InitiatorName:*string
FlexPersistentVolumeSource Driver:string FSType=fsType:string SecretRef:*SecretReference ReadOnly:bool Options:{}string
CinderPersistentVolumeSource VolumeID:string FSType=fsType:string ReadOnly:bool SecretRef:*SecretReference
CephFSPersistentVolumeSource Monitors:[]string Path:string User:string SecretFile:string SecretRef:*SecretReference ReadOnly:bool
FCVolumeSource TargetWWNs:[]string Lun:*int FSType=fsType:string ReadOnly:bool WWIDs=wwids:[]string
FlockerVolumeSource DatasetName:string DatasetUUID:string
AzureFilePersistentVolumeSource SecretName:string ShareName:string ReadOnly:bool SecretNamespace:*string
VsphereVirtualDiskVolumeSource VolumePath:string FSType=fsType:string StoragePolicyName:string StoragePolicyID:string
AzureDiskVolumeSource DiskName:string DataDiskURI=diskURI:string CachingMode:*string FSType=fsType:*string ReadOnly:*bool Kind:*string
PhotonPersistentDiskVolumeSource PdID:string FSType=fsType:string
PortworxVolumeSource VolumeID:string FSType=fsType:string ReadOnly:bool
ScaleIOPersistentVolumeSource Gateway:string System:string SecretRef:*SecretReference SSLEnabled=sslEnabled:bool ProtectionDomain:string
    StoragePool:string StorageMode:string VolumeName:string FSType=fsType:string ReadOnly:bool
LocalVolumeSource Path:string FSType=fsType:*string
StorageOSPersistentVolumeSource VolumeName:string VolumeNamespace:string FSType=fsType:string ReadOnly:bool SecretRef:*ObjectReference
CSIPersistentVolumeSource Driver:string VolumeHandle:string ReadOnly:bool FSType=fsType:string VolumeAttributes:{}string
    ControllerPublishSecretRef:*SecretReference NodeStageSecretRef:*SecretReference NodePublishSecretRef:*SecretReference
    ControllerExpandSecretRef:*SecretReference NodeExpandSecretRef:*SecretReference
VolumeResourceRequirements Limits:{}quantity Requests:{}quantity
TypedLocalObjectReference APIGroup=apiGroup:*string Kind:string Name:string
TypedObjectReference APIGroup=apiGroup:*string Kind:string Name:string Namespace:*string
NodeSelector NodeSelectorTerms:[]NodeSelectorTerm
ConfigMapNodeConfigSource Namespace:string Name:string UID=uid:string ResourceVersion:string KubeletConfigKey:string
ScopedResourceSelectorRequirement ScopeName:string Operator:string Values:[]string
RollingUpdateDeployment MaxUnavailable:intorstring MaxSurge:intorstring
RollingUpdateDaemonSet MaxUnavailable:intorstring MaxSurge:intorstring
RollingUpdateStatefulSetStrategy Partition:int MaxUnavailable:*intorstring
PodFailurePolicyRule Action:string OnExitCodes:*PodFailurePolicyOnExitCodesRequirement
    OnPodConditions:[]PodFailurePolicyOnPodConditionsPattern
SuccessPolicyRule SucceededIndexes:*string SucceededCount:*int
Volume Name:string HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource
    GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource
    AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource GitRepo:*GitRepoVolumeSource Secret:*SecretVolumeSource
    NFS=nfs:*NFSVolumeSource ISCSI=iscsi:*ISCSIVolumeSource Glusterfs:*GlusterfsVolumeSource
    PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD=rbd:*RBDVolumeSource Quobyte:*QuobyteVolumeSource
    FlexVolume:*FlexVolumeSource Cinder:*CinderVolumeSource CephFS=cephfs:*CephFSVolumeSource Flocker:*FlockerVolumeSource
    DownwardAPI:*DownwardAPIVolumeSource FC=fc:*FCVolumeSource AzureFile:*AzureFileVolumeSource ConfigMap:*ConfigMapVolumeSource
    VsphereVolume:*VsphereVirtualDiskVolumeSource AzureDisk:*AzureDiskVolumeSource PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource
    Projected:*ProjectedVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO:*ScaleIOVolumeSource
    StorageOS=storageos:*StorageOSVolumeSource CSI=csi:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource Image:*ImageVolumeSource
Container Name:string Image:string Command:[]string Args:[]string WorkingDir:string Ports:[]ContainerPort EnvFrom:[]EnvFromSource
    Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy:*string
    RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:string TerminationMessagePolicy:string
    ImagePullPolicy:string SecurityContext:*SecurityContext Stdin:bool StdinOnce:bool TTY=tty:bool
PodSecurityContext HostNetwork=^hostNetwork:bool HostPID=^hostPID:bool HostIPC=^hostIPC:bool
    ShareProcessNamespace=^shareProcessNamespace:*bool HostUsers=^hostUsers:*bool SELinuxOptions=seLinuxOptions:*SELinuxOptions
    WindowsOptions:*WindowsSecurityContextOptions RunAsUser:*int RunAsGroup:*int RunAsNonRoot:*bool SupplementalGroups:[]int
    SupplementalGroupsPolicy:*string FSGroup=fsGroup:*int FSGroupChangePolicy=fsGroupChangePolicy:*string Sysctls:[]Sysctl
    SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile SELinuxChangePolicy=seLinuxChangePolicy:*string
LocalObjectReference Name:string
Affinity NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
Toleration Key:string Operator:string Value:string Effect:string TolerationSeconds:*int
HostAlias IP=ip:string Hostnames:[]string
PodDNSConfig Nameservers:[]string Searches:[]string Options:[]PodDNSConfigOption
PodReadinessGate ConditionType:string
TopologySpreadConstraint MaxSkew:int TopologyKey:string WhenUnsatisfiable:string LabelSelector:*~LabelSelector MinDomains:*int
    NodeAffinityPolicy:*string NodeTaintsPolicy:*string MatchLabelKeys:[]string
PodOS Name:string
PodSchedulingGate Name:string
PodResourceClaim Name:string ResourceClaimName:*string ResourceClaimTemplateName:*string
PodSchedulingGroup PodGroupName:*string
ConfigMapEnvSource Name:string Optional:*bool
SecretEnvSource Name:string Optional:*bool
EnvVarSource FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector ConfigMapKeyRef:*ConfigMapKeySelector
    SecretKeyRef:*SecretKeySelector FileKeyRef:*FileKeySelector
ResourceClaim Name:string Request:string
ContainerRestartRuleOnExitCodes Operator:string Values:[]int
ExecAction Command:[]string
HTTPGetAction Path:string Port:intorstring Host:string Scheme:string HTTPHeaders=httpHeaders:[]HTTPHeader
TCPSocketAction Port:intorstring Host:string
GRPCAction Port:int Service:*string
LifecycleHandler Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction Sleep:*SleepAction
Capabilities Add:[]string Drop:[]string
SELinuxOptions User:string Role:string Type:string Level:string
WindowsSecurityContextOptions GMSACredentialSpecName=gmsaCredentialSpecName:*string GMSACredentialSpec=gmsaCredentialSpec:*string
    RunAsUserName:*string HostProcess:*bool
SeccompProfile Type:string LocalhostProfile:*string
AppArmorProfile Type:string LocalhostProfile:*string
SecretReference Name:string Namespace:string
ObjectReference Kind:string Namespace:string Name:string UID=uid:string APIVersion=apiVersion:string ResourceVersion:string
    FieldPath:string
NodeSelectorTerm MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
PodFailurePolicyOnExitCodesRequirement ContainerName:*string Operator:string Values:[]int
PodFailurePolicyOnPodConditionsPattern Type:string Status:string
EmptyDirVolumeSource Medium:string SizeLimit:*quantity
GitRepoVolumeSource Repository:string Revision:string Directory:string
SecretVolumeSource SecretName:string Items:[]KeyToPath DefaultMode:*int Optional:*bool
ISCSIVolumeSource TargetPortal:string IQN=iqn:string Lun:int ISCSIInterface=iscsiInterface:string FSType=fsType:string ReadOnly:bool
    Portals:[]string DiscoveryCHAPAuth=chapAuthDiscovery:bool SessionCHAPAuth=chapAuthSession:bool SecretRef:*LocalObjectReference
    InitiatorName:*string
GlusterfsVolumeSource EndpointsName=endpoints:string Path:string ReadOnly:bool
PersistentVolumeClaimVolumeSource ClaimName:string ReadOnly:bool
RBDVolumeSource CephMonitors=monitors:[]string RBDImage=image:string FSType=fsType:string RBDPool=pool:string RadosUser=user:string
    Keyring:string SecretRef:*LocalObjectReference ReadOnly:bool
FlexVolumeSource Driver:string FSType=fsType:string SecretRef:*LocalObjectReference ReadOnly:bool Options:{}string
CinderVolumeSource VolumeID:string FSType=fsType:string ReadOnly:bool SecretRef:*LocalObjectReference
CephFSVolumeSource Monitors:[]string Path:string User:string SecretFile:string SecretRef:*LocalObjectReference ReadOnly:bool
DownwardAPIVolumeSource Items:[]DownwardAPIVolumeFile DefaultMode:*int
AzureFileVolumeSource SecretName:string ShareName:string ReadOnly:bool
ConfigMapVolumeSource Name:string Items:[]KeyToPath DefaultMode:*int Optional:*bool
ProjectedVolumeSource Sources:[]VolumeProjection DefaultMode:*int
ScaleIOVolumeSource Gateway:string System:string SecretRef:*LocalObjectReference SSLEnabled=sslEnabled:bool ProtectionDomain:string
    StoragePool:string StorageMode:string VolumeName:string FSType=fsType:string ReadOnly:bool
StorageOSVolumeSource VolumeName:string VolumeNamespace:string FSType=fsType:string ReadOnly:bool SecretRef:*LocalObjectReference
CSIVolumeSource Driver:string ReadOnly:*bool FSType=fsType:*string VolumeAttributes:{}string NodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource VolumeClaimTemplate:*PersistentVolumeClaimTemplate
ImageVolumeSource Reference:string PullPolicy:string
Sysctl Name:string Value:string
NodeAffinity RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
    PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
PodAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAntiAffinity RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodDNSConfigOption Name:string Value:*string
ObjectFieldSelector APIVersion=apiVersion:string FieldPath:string
ResourceFieldSelector ContainerName:string Resource:string Divisor:quantity
ConfigMapKeySelector Name:string Key:string Optional:*bool
SecretKeySelector Name:string Key:string Optional:*bool
FileKeySelector VolumeName:string Path:string Key:string Optional:*bool
HTTPHeader Name:string Value:string
SleepAction Seconds:int
NodeSelectorRequirement Key:string Operator:string Values:[]string
KeyToPath Key:string Path:string Mode:*int
DownwardAPIVolumeFile Path:string FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode:*int
VolumeProjection Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection
    ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle:*ClusterTrustBundleProjection
    PodCertificate:*PodCertificateProjection
PersistentVolumeClaimTemplate -=metadata:~ObjectMeta Spec:PersistentVolumeClaimSpec
PreferredSchedulingTerm Weight:int Preference:NodeSelectorTerm
PodAffinityTerm LabelSelector:*~LabelSelector Namespaces:[]string TopologyKey:string NamespaceSelector:*~LabelSelector
    MatchLabelKeys:[]string MismatchLabelKeys:[]string
WeightedPodAffinityTerm Weight:int PodAffinityTerm:PodAffinityTerm
SecretProjection Name:string Items:[]KeyToPath Optional:*bool
DownwardAPIProjection Items:[]DownwardAPIVolumeFile
ConfigMapProjection Name:string Items:[]KeyToPath Optional:*bool
ServiceAccountTokenProjection Audience:string ExpirationSeconds:int Path:string
ClusterTrustBundleProjection Name:*string SignerName:*string LabelSelector:*~LabelSelector Optional:*bool Path:string
PodCertificateProjection SignerName:string KeyType:string MaxExpirationSeconds:*int CredentialBundlePath:string KeyPath:string
    CertificateChainPath:string UserAnnotations:{}string
~ObjectMeta name:string generateName:string namespace:string uid:string resourceVersion:string generation:int creationTimestamp:time
    deletionTimestamp:time deletionGracePeriodSeconds:*int labels:{}string annotations:{}string ownerReferences:[]~OwnerReference
    finalizers:[]string
~OwnerReference apiVersion:!string kind:!string name:!string uid:!string controller:*bool blockOwnerDeletion:*bool
~LabelSelector matchLabels:{}string matchExpressions:[]~LabelSelectorRequirement
~LabelSelectorRequirement key:!string operator:!string values:[]string
)";

}  // namespace

const HubTypes& CoreHubTypes() {
  static const HubTypes kTypes(kTable.substr(1));
  return kTypes;
}

}  // namespace keelson::registry::core
