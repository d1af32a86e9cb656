#include "registry/hub_types.h"

#include <gtest/gtest.h>

#include "base/arena.h"

namespace keelson::registry {
namespace {

TEST(HubTypes, PrintsGoStructs) {
  static const HubTypes kTypes(
      "Pod -=metadata:~Meta Spec:PodSpec\n"
      "PodSpec NodeName:string Context=securityContext:*Context\n"
      "    Items:[]string TTY=tty:bool Port:intorstring\n"
      "Context HostNetwork=^hostNetwork:bool Limits:{}quantity\n"
      "~Meta name:string labels:{}string\n");
  base::Arena arena;
  Value pod = Value::Map(arena);
  Value metadata = pod.EnsureMap(arena, "metadata");
  metadata.EnsureMap(arena, "labels").Set(arena, "b", "<2>");
  metadata.EnsureMap(arena, "labels").Set(arena, "a", "1");
  Value spec = pod.EnsureMap(arena, "spec");
  EXPECT_EQ(
      kTypes.JSON(pod, "Pod"),
      R"({"labels":{"a":"1","b":"\u003c2\u003e"},"Spec":{"NodeName":"","Context":null,"Items":null,"TTY":false,"Port":0}})");
  spec.Set(arena, "hostNetwork", true);
  spec.EnsureMap(arena, "securityContext").EnsureMap(arena, "limits").Set(arena, "cpu", "1");
  EXPECT_EQ(kTypes.Indented(spec, "*PodSpec"),
            "{\n \"NodeName\": \"\",\n \"Context\": {\n  \"HostNetwork\": true,\n  \"Limits\": {\n   \"cpu\": \"1\"\n  "
            "}\n },\n"
            " \"Items\": null,\n \"TTY\": false,\n \"Port\": 0\n}");
}

TEST(HubTypes, EmbedsATypeOfALineBefore) {
  static const HubTypes kTypes(
      "Source Disk:string NFS=nfs:*Share\n"
      "Share Path:string\n"
      "Spec Size:int +Source Modes:[]string\n");
  base::Arena arena;
  Value spec = Value::Map(arena);
  spec.EnsureMap(arena, "nfs").Set(arena, "path", "/x");
  EXPECT_EQ(kTypes.JSON(spec, "Spec"), R"({"Size":0,"Disk":"","NFS":{"Path":"/x"},"Modes":null})");
}

}  // namespace
}  // namespace keelson::registry
