// The words of the pages. English is the key; Chinese has its own table.
const ZH = {
  "Cluster": "集群", "Rewind": "回放", "Events": "事件", "Topics": "主题", "Groups": "消费组", "Records": "记录", "broker": "Broker", "Brokers": "Broker", "leader": "leader", "in sync": "同步中", "not in sync": "未同步", "no answer": "无响应", "lag": "落后", "epoch": "epoch", "from": "始于",
  "The offset of this replica is not known.": "此副本的位移未知。", "controller": "controller", "up": "运行中", "down": "已停止", "leads": "leader 数", "replicas": "副本", "out of sync": "未同步副本", "Unhealthy partitions": "异常分区", "Partition": "分区", "Leader": "Leader", "Replicas": "副本", "In sync": "同步副本", "none": "无",
  "Name": "名称", "Partitions": "分区数", "Min ISR": "最小 ISR", "Health": "健康", "healthy": "健康", "under-replicated": "副本不足", "unavailable": "不可用", "Create topic": "创建主题", "Delete topic": "删除主题", "Add partitions": "增加分区", "Settings": "配置", "Key": "键", "Value": "值", "Source": "来源", "Change": "修改", "Reset to default": "恢复默认",
  "Cancel": "取消", "kill": "强杀", "stop": "停止", "pause": "暂停", "resume": "恢复", "start": "启动", "Group": "消费组", "State": "状态", "Type": "类型", "Members": "成员", "Offsets": "位移", "Committed": "已提交", "End": "末尾", "Lag": "落后", "Trend": "趋势", "Member": "成员", "Reset offsets": "重置位移", "Preview": "预览", "Apply": "执行",
  "Show": "显示", "Search": "搜索", "Stop": "停止", "Older": "更早", "Newer": "更新", "Latest": "最新", "Time": "时间", "Headers": "头", "Offset": "位移", "Log start": "日志起点", "Download": "下载", "Produce": "写入", "Produce a record": "写入一条记录", "High watermark": "高水位", "Quorum": "Quorum", "internal": "内部", "The cluster does not answer": "集群没有响应", "Elect preferred leader": "选举首选 leader", "No records here.": "这里没有记录。",
  "Are you sure?": "确定吗？", "Explanation": "说明", "records read": "条已读", "found": "条匹配", "read-only": "只读", "New records per second": "每秒新记录", "Why": "原因", "What it means": "意味着什么", "What would bring it back": "如何恢复",
};
const VERDICTS = {
  leaderless: n => `${n} 个分区没有 leader：无法读写。`, "below-min": n => `${n} 个分区拒绝 acks=all 写入：同步副本太少。`, "no-controller": () => "没有活动的 controller：读写继续，但 leader 无法变更。", empty: () => "就绪。还没有主题。",
  "at-limit": n => `再失去一个副本，${n} 个分区将停止写入。`, lagging: n => `${n} 个分区副本不足；写入继续。`, tight: n => `健康，但失去一个 broker 会使 ${n} 个分区停止写入。`, fragile: () => "健康，但 quorum 的任何投票者都不能失去。", single: n => `健康，但 ${n} 个分区只有一个副本。`, healthy: n => `健康：可以失去任意 ${n} 个 broker。`,
};
export const language = () => localStorage.getItem("language") || (navigator.language.startsWith("zh") ? "zh" : "en");
export const setLanguage = chosen => localStorage.setItem("language", chosen);
export const t = word => language() === "zh" ? ZH[word] ?? word : word;
export const verdict = found => language() === "zh" && VERDICTS[found.kind] ? VERDICTS[found.kind](found.number) : found.text;
